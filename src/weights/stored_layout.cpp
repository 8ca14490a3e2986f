#include "stored/stored_layout.h"

#include <algorithm>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// Index of row or column `i` of the part along the stacked axis.
std::int64_t stacked_index(const StackRange& range, std::int64_t i) {
  return i / range.size * range.group_size + range.begin + i % range.size;
}

bool is_column(MatrixShape shape) { return shape.columns == 1; }

}  // namespace

MatrixShape matrix_shape(std::span<const std::int64_t> shape) {
  MatrixShape matrix{1, 1};
  if (!shape.empty()) matrix.rows = shape.front();
  for (const std::int64_t size : shape.subspan(std::min<std::size_t>(1, shape.size()))) {
    matrix.columns *= size;
  }
  return matrix;
}

MatrixShape stored_shape(const StoredLayout& layout, const StackRange& range, MatrixShape wanted) {
  MatrixShape whole = wanted;
  if (layout.stacking != Stacking::alone) {
    (layout.axis == StackAxis::out ? whole.rows : whole.columns) = range.groups * range.group_size;
  }
  // Only matrices are transposed, not biases.
  const bool is_transposed = layout.order == StoredOrder::transposed && !is_column(wanted);
  return is_transposed ? MatrixShape{whole.columns, whole.rows} : whole;
}

void copy_part(std::span<const float> stored, const StoredLayout& layout, const StackRange& range,
               MatrixShape wanted, std::span<float> out) {
  const MatrixShape whole = stored_shape(layout, range, wanted);
  if (static_cast<std::int64_t>(stored.size()) != whole.rows * whole.columns ||
      static_cast<std::int64_t>(out.size()) != wanted.rows * wanted.columns) {
    throw Error(ErrorCode::internal, "sizes differ from the part of the tensor to copy");
  }
  const bool is_transposed = layout.order == StoredOrder::transposed && !is_column(wanted);
  const bool parted = layout.stacking != Stacking::alone;
  const bool rows_parted = parted && layout.axis == StackAxis::out;
  const bool columns_parted = parted && layout.axis == StackAxis::in;
  const std::int64_t row_step = is_transposed ? 1 : whole.columns;
  const std::int64_t column_step = is_transposed ? whole.columns : 1;
  auto to = out.begin();
  for (std::int64_t r = 0; r < wanted.rows; ++r) {
    const std::int64_t row = (rows_parted ? stacked_index(range, r) : r) * row_step;
    for (std::int64_t c = 0; c < wanted.columns; ++c) {
      const std::int64_t column = (columns_parted ? stacked_index(range, c) : c) * column_step;
      *to++ = stored[static_cast<std::size_t>(row + column)];
    }
  }
}

bool has_whole_rows(const StoredLayout& layout) {
  return layout.order == StoredOrder::as_is &&
         (layout.stacking == Stacking::alone || layout.axis == StackAxis::out);
}

std::vector<std::byte> rows_of_part(std::span<const std::byte> stored, const StoredLayout& layout,
                                    const StackRange& range, std::int64_t rows,
                                    std::size_t row_bytes) {
  std::vector<std::byte> part;
  part.reserve(static_cast<std::size_t>(rows) * row_bytes);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t from = layout.stacking == Stacking::alone ? r : stacked_index(range, r);
    const auto row = stored.subspan(static_cast<std::size_t>(from) * row_bytes, row_bytes);
    part.insert(part.end(), row.begin(), row.end());
  }
  return part;
}

}  // namespace headroom::detail
