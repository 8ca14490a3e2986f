// Kernels of a ggml block type: products of tiles with rows of activations, and decoding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "block_tile.h"
#include "ggml_type.h"
#include "int8_rows.h"

namespace headroom::measured::blocks {

/// Operands of y [rows, kLanes] = x·Wᵀ for one tile of W, or for several that are equally far
/// apart. X is float, or Int8Block for int8.
template <class X>
struct TileOperands {
  const std::byte* tile = nullptr;  ///< `blocks` tiles of blocks, one after another
  std::int64_t blocks = 0;
  std::int64_t next_tile = 0;  ///< tiles from one to the next of several
  const X* x = nullptr;
  std::int64_t x_stride = 0;  ///< of a row, in X
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t lanes = 0;  ///< rows of W in the tile; fewer than kLanes in the last one
};

template <class X>
using TileProduct = void (*)(const TileOperands<X>& operands);

/// Numbers of rows of x that a product takes at once: each block is decoded once for all of them.
inline constexpr std::array<std::int64_t, 3> kRowsAtOnce{8, 4, 1};

/// Tiles of W that a product of one row takes at once. One row has nothing to do but to read, and
/// memory delivers several streams faster than one; the row is broadcast once for all of them.
inline constexpr std::int64_t kTilesAtOnce = 4;

/// Products of a tile by number of rows, as in kRowsAtOnce, and of kTilesAtOnce tiles with one row.
template <class X>
struct TileProducts {
  std::array<TileProduct<X>, kRowsAtOnce.size()> of_rows;
  TileProduct<X> of_tiles;
};

struct FormatKernels {
  checkpoint::GgmlType type;
  std::size_t values;  ///< of a block
  std::span<const BlockField> fields;
  TileProducts<Int8Block> int8;
  TileProducts<float> float32;
  /// Writes the values of row `lane` of one block to `to`.
  void (*decode)(const std::byte* tile, std::size_t lane, float* to);
};

/// Types of 32 values, and those of 256.
[[nodiscard]] std::span<const FormatKernels> plain_format_kernels();
[[nodiscard]] std::span<const FormatKernels> k_format_kernels();

/// Kernels of `type`; null if it has none.
[[nodiscard]] const FormatKernels* find_kernels(checkpoint::GgmlType type) noexcept;

}  // namespace headroom::measured::blocks
