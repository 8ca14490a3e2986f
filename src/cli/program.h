// The program without its process: every command, run on a list of arguments. `main` and the C API
// call it.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"
#include "headroom/error.h"
#include "user_settings.h"

namespace headroom::cli {

/// Parses `arguments`, without the program's name, and runs their command with `settings` for
/// options that are left out. Returns its exit status: 0, or 1 if a verdict failed. Throws
/// headroom::Error, detail::Interrupted, and what the standard library throws; `current_error`
/// turns all but the second into an Error.
int run_program(const std::vector<std::string>& arguments, const UserSettings& settings = {});

/// The program's commands with their arguments and options.
[[nodiscard]] CommandSummary describe_program();

/// The exception being handled, in the words of the command line. Call in a handler.
[[nodiscard]] Error current_error();

/// The exit status for the exception being handled: 1 if no plan fits, else that of its kind. Call
/// in a handler.
[[nodiscard]] int current_status();

/// Writes the error and its hint to standard error. Returns the exit status of its kind.
int print_error(const Error& error);

}  // namespace headroom::cli
