// Kernels of a ggml block type: products of tiles with rows of activations, and decoding.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "../parallel.h"
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

/// Numbers of rows of x that a product takes at once: each block is decoded once for all of them.
inline constexpr std::array<std::int64_t, 3> kRowsAtOnce{8, 4, 1};

/// Tiles of W that a product of one row takes at once. One row has nothing to do but to read, and
/// memory delivers several streams faster than one; the row is broadcast once for all of them.
inline constexpr std::int64_t kTilesAtOnce = 4;

/// Products of a tile by number of rows, as in kRowsAtOnce, and of kTilesAtOnce tiles with one row.
template <class Operands>
struct TileProducts {
  using Product = void (*)(const Operands& operands);

  std::array<Product, kRowsAtOnce.size()> of_rows;
  Product of_tiles;
};

/// Multiplies a tile with `rows` rows of x, as many at once as there are products for.
template <class Operands>
void multiply_rows(const TileProducts<Operands>& products, Operands at, std::int64_t rows) {
  for (std::size_t i = 0; i < kRowsAtOnce.size(); ++i) {
    for (; rows >= kRowsAtOnce[i]; rows -= kRowsAtOnce[i]) {
      products.of_rows[i](at);
      at.x += kRowsAtOnce[i] * at.x_stride;
      at.y += kRowsAtOnce[i] * at.y_stride;
    }
  }
}

/// Multiplies the tiles of `range` with `rows` rows of x: one row with several tiles at once, which
/// are equally far apart, more rows with one tile after another: it stays in the cache for all of
/// them. `whole` tiles of the matrix have kLanes rows of W. operands_of(first, next) returns the
/// operands of tile `first`, or of kTilesAtOnce from it on, each `next` behind the one before.
template <class Operands, class OperandsOf>
void multiply_range(const TileProducts<Operands>& products, Range range, std::int64_t whole,
                    std::int64_t rows, const OperandsOf& operands_of) {
  std::int64_t tile = range.begin;
  if (rows == 1) {
    const std::int64_t count = std::min(range.end, whole) - range.begin;
    const std::int64_t next = std::max<std::int64_t>(0, count) / kTilesAtOnce;
    for (; tile < range.begin + next; ++tile) products.of_tiles(operands_of(tile, next));
    tile += (kTilesAtOnce - 1) * next;
  }
  for (; tile < range.end; ++tile) multiply_rows(products, operands_of(tile, 0), rows);
}

struct FormatKernels {
  checkpoint::GgmlType type;
  std::size_t values;  ///< of a block
  std::span<const BlockField> fields;
  TileProducts<TileOperands<Int8Block>> int8;
  TileProducts<TileOperands<float>> float32;
  /// Writes the values of row `lane` of one block to `to`.
  void (*decode)(const std::byte* tile, std::size_t lane, float* to);
};

/// Types of 32 values, and those of 256.
[[nodiscard]] std::span<const FormatKernels> plain_format_kernels();
[[nodiscard]] std::span<const FormatKernels> k_format_kernels();

/// Kernels of `type`; null if it has none.
[[nodiscard]] const FormatKernels* find_kernels(checkpoint::GgmlType type) noexcept;

}  // namespace headroom::measured::blocks
