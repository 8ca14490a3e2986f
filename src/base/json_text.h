// Parses untrusted JSON: bounded size and depth, no duplicate keys, errors with their place.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headroom::detail {

/// Parses `text`. Throws Error{invalid_input} that names `file` if the text is not UTF-8, is not
/// JSON, nests deeper than any model description, or repeats a key.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);

/// Reads the whole file; "-" is standard input, and pipes are read to their end. Throws
/// Error{missing_resource} if it is unreadable, Error{invalid_input} if it is larger than any model
/// description.
[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace headroom::detail
