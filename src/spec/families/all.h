// Records of all families. The source is generated from families.cmake.
#pragma once

#include <vector>

#include "../family.h"

namespace headroom::detail {

/// In the order of families.cmake.
[[nodiscard]] std::vector<Family> all_families();

}  // namespace headroom::detail
