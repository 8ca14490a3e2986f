// Iteration order of a Python set, where a preprocessor's result depends on it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace headroom::detail {

using IntegerPair = std::array<std::int64_t, 2>;

/// The pairs in the order in which CPython iterates a set of them: that of the slots of its hash
/// table. At most 4 distinct pairs, inserted in their order here, of integers of at least 0.
[[nodiscard]] std::vector<IntegerPair> in_set_order(const std::vector<IntegerPair>& pairs);

}  // namespace headroom::detail
