// Iteration order of a Python set, where a preprocessor's result depends on it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace headroom::detail {

using IntegerPair = std::array<std::int64_t, 2>;

/// The pairs in the order in which CPython iterates a set of them, inserted as listed here: the
/// order of the slots of its hash table. At most 4 distinct pairs of integers that are not
/// negative.
[[nodiscard]] std::vector<IntegerPair> in_set_order(const std::vector<IntegerPair>& pairs);

}  // namespace headroom::detail
