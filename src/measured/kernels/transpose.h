// Transposition of small matrices through registers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "simd.h"

namespace headroom::measured {

/// Last vector of a row: written exactly, or whole and padded with zeros.
enum class RowEnd { exact, padded };

namespace internal {

using Square = std::array<simd::Floats, simd::kLanes>;

/// Merges two vectors in blocks of `distance` lanes: lanes of `a` where that bit of i is clear,
/// lanes of `b` moved up where it is set. `upper` takes the other halves.
template <std::size_t distance, bool upper, std::size_t... lanes>
inline simd::Floats merge_blocks(simd::Floats a, simd::Floats b, std::index_sequence<lanes...>) {
  constexpr std::size_t kShift = upper ? distance : 0;
  return __builtin_shufflevector(
      a, b,
      static_cast<int>((lanes & distance) == 0 ? lanes + kShift
                                               : simd::kLanes + lanes - distance + kShift)...);
}

/// Transposes by swapping off-diagonal blocks of half the size, then of a quarter, and so on.
template <std::size_t distance = simd::kLanes / 2>
[[gnu::always_inline]] inline void transpose_square(Square& rows) {
  constexpr auto kAll = std::make_index_sequence<simd::kLanes>{};
  simd::unroll<simd::kLanes>([&](auto i) {
    if constexpr ((i & distance) == 0) {
      const simd::Floats a = rows[i];
      const simd::Floats b = rows[i + distance];
      rows[i] = merge_blocks<distance, false>(a, b, kAll);
      rows[i + distance] = merge_blocks<distance, true>(a, b, kAll);
    }
  });
  if constexpr (distance > 1) transpose_square<distance / 2>(rows);
}

/// Transposes a whole square, in registers if there are enough.
template <class From, class To>
inline void transpose_whole(const From& from, const To& to) {
  Square square;
  simd::unroll<simd::kLanes>(
      [&](auto r) { square[r] = simd::load(from(static_cast<std::int64_t>(r()))); });
  transpose_square(square);
  simd::unroll<simd::kLanes>(
      [&](auto c) { simd::store(to(static_cast<std::int64_t>(c())), square[c]); });
}

}  // namespace internal

/// to(c)[r] = from(r)[c] for r < rows, c < columns; `from` and `to` return pointers to rows. With
/// RowEnd::padded the output rows must have room for whole vectors.
template <RowEnd end, class From, class To>
void transpose(std::int64_t rows, std::int64_t columns, const From& from, const To& to) {
  using simd::kLanes;
  for (std::int64_t row = 0; row < rows; row += kLanes) {
    const std::int64_t some_rows = std::min(kLanes, rows - row);
    for (std::int64_t column = 0; column < columns; column += kLanes) {
      const std::int64_t some_columns = std::min(kLanes, columns - column);
      if (some_rows == kLanes && some_columns == kLanes) {
        internal::transpose_whole([&](std::int64_t r) { return from(row + r) + column; },
                                  [&](std::int64_t c) { return to(column + c) + row; });
        continue;
      }
      internal::Square square = {};
      for (std::int64_t r = 0; r < some_rows; ++r) {
        const float* at = from(row + r) + column;
        square[static_cast<std::size_t>(r)] =
            some_columns == kLanes ? simd::load(at) : simd::load_first(at, some_columns);
      }
      internal::transpose_square(square);
      for (std::int64_t c = 0; c < some_columns; ++c) {
        float* at = to(column + c) + row;
        const simd::Floats value = square[static_cast<std::size_t>(c)];
        if (end == RowEnd::padded || some_rows == kLanes) {
          simd::store(at, value);
        } else {
          simd::store_first(at, value, some_rows);
        }
      }
    }
  }
}

}  // namespace headroom::measured
