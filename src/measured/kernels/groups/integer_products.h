// Products of codes that are integers with int8 activations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "../blocks/byte_table.h"
#include "../blocks/format_kernels.h"
#include "../blocks/int8_rows.h"
#include "grouped_weights.h"
#include "next_tile.h"

namespace headroom::measured::groups {

/// Operands of y [rows, kLanes] = x·Wᵀ for one tile of W, or for several that are equally far
/// apart, whose values are factor·scale·(code − zero).
struct IntegerTile {
  const std::byte* codes = nullptr;
  const float* scales = nullptr;  ///< [groups, kLanes]
  const float* zeros = nullptr;   ///< [groups, kLanes], of these codes
  float factor = 1;
  std::int64_t columns = 0;
  std::int64_t group = 0;  ///< columns that share a scale
  const blocks::ByteTable* table = nullptr;
  const blocks::Int8Block* x = nullptr;
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t lanes = 0;  ///< rows of W in the tile
  NextTile next{};
};

using IntegerProducts = blocks::TileProducts<IntegerTile>;

/// Codes as unsigned bytes, less blocks::kCentre for signed ones: value = factor·(code − zero).
struct IntegerCodes {
  IntegerProducts products{};
  blocks::ByteTable table{};  ///< bytes of nibbles
  float zero = 0;
  float factor = 1;
};

/// Integer codes of `weights`; empty if their levels are no multiples of one half, as NF4's, or
/// float8, or if their groups do not fill halves of blocks of activations.
[[nodiscard]] std::optional<IntegerCodes> integer_codes(const checkpoint::GroupedWeights& weights);

/// Columns of a word of nibbles: the low ones hold its first four columns, the high ones the other
/// four. Files have them in turns; `with_nibbles_in_halves` and `with_nibbles_in_turns` convert.
[[nodiscard]] std::uint32_t with_nibbles_in_halves(std::uint32_t word) noexcept;
[[nodiscard]] std::uint32_t with_nibbles_in_turns(std::uint32_t word) noexcept;

}  // namespace headroom::measured::groups
