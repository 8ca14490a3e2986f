// The hint of errors about a model type that headroom does not know.
#pragma once

#include <string>
#include <string_view>

namespace headroom::detail {

/// Two lines: the closest known types, and the command that lists all.
[[nodiscard]] std::string list_of_types_hint(std::string_view model_type);

}  // namespace headroom::detail
