// JSON as Python writes it, which may hold Infinity.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/data.h"

namespace headroom::test {

/// The JSON of `file`, with 1e30 in place of Infinity, but for strings.
inline nlohmann::json read_with_infinity(const std::filesystem::path& file) {
  static const std::regex kInfinity("([^\"])Infinity");
  return nlohmann::json::parse(std::regex_replace(read_file(file), kInfinity, "$011e30"));
}

}  // namespace headroom::test
