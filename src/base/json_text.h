// Parsing of JSON from outside: bounded depth, no duplicate keys, errors that say where.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headroom::detail {

/// The document in `text`. Throws Error{invalid_input} naming `file` when the text is not UTF-8, is
/// not JSON, nests deeper than any model description does, or repeats a key.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);

/// The whole content of `path`. Throws Error{invalid_input} when it cannot be read or is larger
/// than a model description can be.
[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace headroom::detail
