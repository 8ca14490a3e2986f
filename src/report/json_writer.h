// JSON output with keys in insertion order and exact integers of any size. Internal to src/report.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headroom/expr.h"

namespace headroom::detail {

using Json = nlohmann::ordered_json;

/// An exact integer. nlohmann's numbers have 64 bits; a larger integer becomes a marked string, and
/// `to_json_text` writes its digits without quotes.
[[nodiscard]] Json json_integer(Integer value);

/// The number, or null if it is missing or not finite.
[[nodiscard]] Json json_or_null(const std::optional<double>& value);

/// The document, indented by two spaces, with a newline at the end.
[[nodiscard]] std::string to_json_text(const Json& document);

/// The document on one line, without blanks.
[[nodiscard]] std::string to_compact_json_text(const Json& document);

}  // namespace headroom::detail
