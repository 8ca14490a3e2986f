// Matrix in ggml's blocks, held in as many bytes as its file: only their order changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "aligned.h"
#include "format_kernels.h"
#include "gemm.h"
#include "parallel.h"

namespace headroom::measured::blocks {

/// Operands of y [rows, out] = x·Wᵀ; the strides are those of one row. X is float or Int8Block.
template <class X>
struct RowOperands {
  const X* x = nullptr;
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t rows = 0;
};

/// W [rows, columns] in tiles of kLanes rows; the last one is filled up with rows of zeros.
class BlockMatrix {
 public:
  /// Lays out `part`, whole rows as in a file. Throws Error{internal} for a type without kernels or
  /// sizes that do not fill blocks.
  BlockMatrix(const BlockPart& part, std::int64_t columns);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t tiles() const noexcept { return (rows_ + kLanes - 1) / kLanes; }
  /// Bytes of the blocks, without the zeros that fill the last tile.
  [[nodiscard]] std::int64_t stored_bytes() const noexcept;
  [[nodiscard]] std::int64_t held_bytes() const noexcept {
    return static_cast<std::int64_t>(tiles_.size());
  }
  /// Decodes row `row` to `to`, [columns].
  void read_row(std::int64_t row, float* to) const;

  /// y = x·Wᵀ for the rows of W in the tiles of `range`; `y` has one column per row of W.
  void multiply(const RowOperands<float>& operands, Range range) const;
  void multiply(const RowOperands<Int8Block>& operands, Range range) const;

 private:
  [[nodiscard]] std::int64_t tile_bytes() const noexcept { return row_bytes_ * kLanes; }
  void store_row(const std::byte* from, std::int64_t row);
  template <class X>
  void multiply_with(const TileProducts<TileOperands<X>>& products, const RowOperands<X>& operands,
                     Range range) const;

  const FormatKernels* kernels_;
  std::int64_t blocks_ = 0;     ///< of a row
  std::int64_t row_bytes_ = 0;  ///< of a stored row
  std::int64_t rows_ = 0;
  UnfilledVector<std::byte> tiles_;
};

}  // namespace headroom::measured::blocks
