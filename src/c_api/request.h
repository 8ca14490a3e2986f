// Requests of the C API, as command lines of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "temporary_model.h"

namespace headroom::c_api {

/// A command line, and the files that it names.
struct Request {
  std::vector<std::string> arguments;
  std::vector<TemporaryModel> models;
  bool wants_json = false;  ///< the command writes JSON
};

/// Reads a request's JSON. Throws Error{invalid_input} for a command, key or value that `program`
/// does not have.
[[nodiscard]] Request read_request(std::string_view json, const cli::CommandSummary& program);

}  // namespace headroom::c_api
