// Parts of stored matrices, run by run of what is consecutive in their tensors. Internal to
// src/measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weight_places.h"
#include "weight_slice.h"

namespace headroom::measured {

/// Consecutive rows or columns of a part that are consecutive in its tensor.
struct StoredRun {
  std::int64_t wanted = 0;
  std::int64_t stored = 0;
  std::int64_t count = 0;
};

/// Runs of the indices [begin, begin + count) along an axis that the layout of `place` stacks, or
/// does not.
[[nodiscard]] std::vector<StoredRun> runs_of(const headroom::detail::WeightPlace& place,
                                             headroom::detail::StackAxis axis, std::int64_t begin,
                                             std::int64_t count);

/// Reads the elements of a tensor's row `row` from `column` on.
using ReadElements =
    std::function<void(std::int64_t row, std::int64_t column, std::span<float> to)>;

/// Copies a block of the matrix that `place` stores to its target in `out`.
void copy_block(const headroom::detail::WeightPlace& place, const WeightBlock& block,
                const ReadElements& read, std::span<float> out);

}  // namespace headroom::measured
