// Kernels of a ggml block type: products of tiles with rows of activations, and decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "block_tile.h"
#include "ggml_type.h"
#include "int8_rows.h"
#include "tile_products.h"

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
