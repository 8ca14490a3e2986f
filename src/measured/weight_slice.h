// Parts of weights, which the ranks of a sharded run hold. Internal to src/measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace headroom::measured {

/// Elements [begin, begin + count) of one dimension of `whole` elements. Those beyond its end are
/// padding.
struct WeightSlice {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t whole = 0;

  [[nodiscard]] std::int64_t present() const noexcept {
    return std::clamp<std::int64_t>(whole - begin, 0, count);
  }
};

/// A rectangle of a weight that is seen as a matrix: its last dimension has the columns, all others
/// the rows. A vector is one column.
struct WeightBlock {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
  std::int64_t whole_columns = 1;  ///< of the weight
  std::size_t target = 0;          ///< index of its first element in the part
  std::size_t target_columns = 1;  ///< of the part, padding included

  /// Index of the first element of row `i` in the weight.
  [[nodiscard]] std::size_t source_of(std::int64_t i) const noexcept {
    return static_cast<std::size_t>((row + i) * whole_columns + column);
  }
  /// Likewise in the part.
  [[nodiscard]] std::size_t target_of(std::int64_t i) const noexcept {
    return target + static_cast<std::size_t>(i) * target_columns;
  }
};

/// Elements of the part that `slices`, one for each dimension, select.
[[nodiscard]] std::size_t elements_of(std::span<const WeightSlice> slices);

/// Visits the blocks of that part, without its padding.
void for_each_block(std::span<const WeightSlice> slices,
                    const std::function<void(const WeightBlock& block)>& visit);

}  // namespace headroom::measured
