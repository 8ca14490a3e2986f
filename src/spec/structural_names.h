// Keys that some family's reader takes as a size, a flag, a list of layers or a nested object.
// Collected from the readers when headroom is built (structural_names.cmake).
#pragma once

#include <string_view>

namespace headroom::detail {

[[nodiscard]] bool is_read_by_some_family(std::string_view key);

}  // namespace headroom::detail
