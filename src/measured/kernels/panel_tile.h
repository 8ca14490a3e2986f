// Register tiles of a matrix product: a few rows of x with a few vectors of neighbouring outputs.
// Each weight that is read is multiplied with all rows of the tile. One row is multiplied with
// several panels at once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "simd.h"
#include "weight_panels.h"

namespace headroom::measured {

/// Rows and vectors of a tile, as many as keep its sums in registers: 24 of 32 vectors with AVX-512
/// and NEON, else 12 of 16.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr std::size_t kTileRows = 6;
#else
inline constexpr std::size_t kTileRows = 3;
#endif
inline constexpr std::size_t kTileVectors = 4;

/// Panels of a tile of one row, which has nothing to do but to read: memory delivers several
/// streams faster than one. With kTileVectors, their sums fill 12 vectors.
inline constexpr std::size_t kTilePanels = 3;

/// First value of a tile's sums.
enum class FirstSum { zero, y };

/// Operands of tiles of one panel, from its first input on: x [rows, inputs] and y [rows, columns];
/// or of several that are equally far apart.
template <class Weight>
struct TileOperands {
  const Weight* weights = nullptr;
  std::int64_t word_stride = 0;  ///< weights from an input word to the next
  std::int64_t inputs = 0;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t columns = 0;  ///< that exist; others are computed, and not stored
  FirstSum first_sum = FirstSum::zero;
  std::int64_t next_weights = 0;  ///< weights from one of several panels to the next
  std::int64_t next_columns = 0;  ///< columns of y between them
};

/// Input `input` of the words at `from`.
template <std::size_t input>
simd::Floats load_input(const float* from) {
  static_assert(input == 0);
  return simd::load(from);
}

/// bfloat16 is the upper half of a float32.
template <std::size_t input>
simd::Floats load_input(const std::uint16_t* from) {
  simd::Words words;
  std::memcpy(&words, from, sizeof words);
  return std::bit_cast<simd::Floats>(input == 0 ? words << 16 : words & 0xffff0000U);
}

template <std::size_t panels, std::size_t rows, std::size_t vectors>
using TileSums = std::array<std::array<std::array<simd::Floats, vectors>, rows>, panels>;

/// Adds the products of the first `inputs` inputs of a word of every panel.
template <std::size_t inputs, std::size_t panels, std::size_t rows, std::size_t vectors,
          class Weight>
[[gnu::always_inline]] inline void add_word(const Weight* words, std::int64_t next_weights,
                                            const float* x, std::int64_t x_stride,
                                            TileSums<panels, rows, vectors>& sums) {
  simd::unroll<inputs>([&](auto input) {
    simd::unroll<panels>([&](auto p) {
      const Weight* const own = words + static_cast<std::int64_t>(p) * next_weights;
      std::array<simd::Floats, vectors> w;
      simd::unroll<vectors>([&](auto v) {
        constexpr std::int64_t kVector = simd::kLanes * kWordInputs<Weight>;
        w[v] = load_input<decltype(input)::value>(own + static_cast<std::int64_t>(v) * kVector);
      });
      simd::unroll<rows>([&](auto r) {
        const simd::Floats value = simd::broadcast(
            x[static_cast<std::int64_t>(r) * x_stride + static_cast<std::int64_t>(input)]);
        simd::unroll<vectors>([&](auto v) { sums[p][r][v] += value * w[v]; });
      });
    });
  });
}

/// Calls visit(sum, y, columns) for the sums whose part of y exists.
template <std::size_t panels, std::size_t rows, std::size_t vectors, class Weight, class Visit>
[[gnu::always_inline]] inline void for_outputs(const TileOperands<Weight>& at,
                                               TileSums<panels, rows, vectors>& sums,
                                               const Visit& visit) {
  simd::unroll<panels>([&](auto p) {
    float* const own = at.y + static_cast<std::int64_t>(p) * at.next_columns;
    simd::unroll<rows>([&](auto r) {
      simd::unroll<vectors>([&](auto v) {
        const std::int64_t first = static_cast<std::int64_t>(v) * simd::kLanes;
        const std::int64_t columns = std::min(simd::kLanes, at.columns - first);
        if (columns <= 0) return;
        visit(sums[p][r][v], own + static_cast<std::int64_t>(r) * at.y_stride + first, columns);
      });
    });
  });
}

/// y = x·Wᵀ, or y + x·Wᵀ, of a tile.
template <std::size_t panels, std::size_t rows, std::size_t vectors, class Weight>
void multiply_tile(const TileOperands<Weight>& at) {
  constexpr std::int64_t kInputs = kWordInputs<Weight>;
  TileSums<panels, rows, vectors> sums = {};
  if (at.first_sum == FirstSum::y) {
    for_outputs(at, sums, [&](simd::Floats& sum, const float* y, std::int64_t columns) {
      sum = columns == simd::kLanes ? simd::load(y) : simd::load_first(y, columns);
    });
  }
  const Weight* words = at.weights;
  const float* x = at.x;
  for (std::int64_t i = 0; i < at.inputs / kInputs; ++i, words += at.word_stride, x += kInputs) {
    add_word<static_cast<std::size_t>(kInputs)>(words, at.next_weights, x, at.x_stride, sums);
  }
  if (at.inputs % kInputs != 0) add_word<1>(words, at.next_weights, x, at.x_stride, sums);
  for_outputs(at, sums, [&](const simd::Floats& sum, float* y, std::int64_t columns) {
    if (columns == simd::kLanes)
      simd::store(y, sum);
    else
      simd::store_first(y, sum, columns);
  });
}

/// Multiplies `rows` rows: whole tiles, then one of the rest.
template <std::size_t vectors, class Weight, std::size_t tile_rows = kTileRows>
void multiply_rows(TileOperands<Weight> at, std::int64_t rows) {
  constexpr auto kRows = static_cast<std::int64_t>(tile_rows);
  for (; rows >= kRows; rows -= kRows) {
    multiply_tile<1, tile_rows, vectors>(at);
    at.x += kRows * at.x_stride;
    at.y += kRows * at.y_stride;
  }
  if constexpr (tile_rows > 1) {
    if (rows > 0) multiply_rows<vectors, Weight, tile_rows - 1>(at, rows);
  }
}

}  // namespace headroom::measured
