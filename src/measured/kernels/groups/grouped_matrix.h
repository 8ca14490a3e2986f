// Matrix of codes with scales per group of columns, as quantised checkpoints store it. It is held
// in as many bits: only their order changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "../aligned.h"
#include "../blocks/block_matrix.h"
#include "../gemm.h"
#include "../parallel.h"
#include "grouped_weights.h"
#include "integer_products.h"
#include "next_tile.h"
#include "tile_scales.h"

namespace headroom::measured::groups {

/// Operands of y [rows, kLanes] = x·Wᵀ for one tile of W, or for several that are equally far
/// apart.
struct GroupTile {
  const std::byte* codes = nullptr;
  const float* scales = nullptr;  ///< [groups, kLanes]
  const float* zeros = nullptr;   ///< [groups, kLanes]
  std::int64_t columns = 0;
  std::int64_t group = 0;  ///< columns that share a scale
  const std::array<float, 16>* levels = nullptr;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t lanes = 0;  ///< rows of W in the tile
  NextTile next{};
};

using GroupProducts = blocks::TileProducts<GroupTile>;

struct GroupKernels {
  GroupProducts plain;
  GroupProducts with_zeros;
};

/// Kernels for codes of this kind, whose nibbles have these levels.
[[nodiscard]] const GroupKernels& kernels_of(checkpoint::CodeKind kind,
                                             const std::array<float, 16>& levels);

/// W [rows, columns] in tiles of kLanes rows; the last one is filled up with rows of zeros.
class GroupedMatrix {
 public:
  /// Lays out weights for products with activations of `path`, or with float32 ones if they have no
  /// integer products; `source` is that of their codes. Throws Error{internal} for sizes that do
  /// not fill words.
  GroupedMatrix(const checkpoint::GroupedWeights& weights, SourceMemory source,
                ActivationPath path);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  /// Returns whether `multiply` takes int8 activations instead of float32 ones.
  [[nodiscard]] bool takes_int8() const noexcept { return integers_.has_value(); }
  [[nodiscard]] std::int64_t tiles() const noexcept;
  /// Bytes of codes, scales, zero points and order, with the zeros that fill the last tile.
  [[nodiscard]] std::int64_t held_bytes() const noexcept;
  /// Column of W of each column of x that `multiply` takes; empty: as they are.
  [[nodiscard]] const PooledVector<std::int32_t>& order() const noexcept { return order_; }
  /// Floats of scratch that `multiply` needs on each thread.
  [[nodiscard]] std::int64_t scratch_floats() const noexcept;

  /// Decodes row `row` to `to`, [columns].
  void read_row(std::int64_t row, float* to) const;
  /// y = x·Wᵀ for the rows of W in the tiles of `range`; `y` has one column per row of W.
  void multiply(const blocks::RowOperands<float>& operands, Range range, float* scratch) const;
  void multiply(const blocks::RowOperands<blocks::Int8Block>& operands, Range range,
                float* scratch) const;

 private:
  [[nodiscard]] std::int64_t tile_bytes() const noexcept;
  [[nodiscard]] std::int64_t unit() const noexcept;
  void store_row(const std::byte* from, std::int64_t row);
  [[nodiscard]] std::int64_t scale_floats() const noexcept;
  void decode_scales(std::int64_t tile, float* scales, float* zeros) const;
  template <class Tile, class X>
  [[nodiscard]] Tile tile_with(const blocks::RowOperands<X>& operands) const;
  template <class Tile>
  void multiply_tiles(const blocks::TileProducts<Tile>& products, const Tile& common,
                      std::int64_t rows, Range range, float* scratch) const;

  checkpoint::CodeKind kind_;
  const GroupKernels* kernels_;
  std::optional<IntegerCodes> integers_;
  std::array<float, 16> levels_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t group_;
  TileScales scales_;
  UnfilledVector<std::byte> codes_;
  PooledVector<std::int32_t> order_;
};

}  // namespace headroom::measured::groups
