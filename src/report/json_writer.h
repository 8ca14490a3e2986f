// JSON out: key order kept, exact integers of any size. Internal to src/report.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headroom/integer.h"

namespace headroom::detail {

using Json = nlohmann::ordered_json;

/// An exact integer. JSON has no limit on digits, but nlohmann's numbers have 64 bits; a larger one
/// travels as a marked text until `to_json_text` writes its digits.
[[nodiscard]] Json json_integer(Integer value);

/// A finite number; null for none.
[[nodiscard]] Json json_or_null(const std::optional<double>& value);

/// The document, indented by two, with a newline at the end.
[[nodiscard]] std::string to_json_text(const Json& document);

}  // namespace headroom::detail
