#include "block_matrix.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "headroom/error.h"
#include "memory_nodes.h"
#include "source_rows.h"

namespace headroom::measured::blocks {
namespace {

const FormatKernels& kernels_of(checkpoint::GgmlType type) {
  const FormatKernels* const kernels = find_kernels(type);
  if (kernels != nullptr) return *kernels;
  throw Error(ErrorCode::internal,
              "no kernel for blocks of " + std::string(checkpoint::info(type).name));
}

/// Copies one block into its lane of a tile.
void store_block(std::span<const BlockField> fields, const std::byte* from, std::size_t lane,
                 std::byte* tile) {
  for (const BlockField& field : fields) {
    for (std::size_t at = 0; at < field.bytes; at += field.unit) {
      std::byte* const to = tile + (field.offset + at) * kLanes + lane * field.unit;
      std::memcpy(to, from + field.offset + at, field.unit);
    }
  }
}

}  // namespace

BlockMatrix::BlockMatrix(const BlockPart& part, std::int64_t columns)
    : kernels_(&kernels_of(part.type)) {
  const auto values = static_cast<std::int64_t>(kernels_->values);
  blocks_ = columns / values;
  row_bytes_ = blocks_ * static_cast<std::int64_t>(block_bytes(kernels_->fields));
  const auto bytes = static_cast<std::int64_t>(part.blocks.size());
  if (columns % values != 0 || row_bytes_ == 0 || bytes % row_bytes_ != 0) {
    throw Error(ErrorCode::internal, "a matrix does not fill whole blocks");
  }
  rows_ = bytes / row_bytes_;
  tiles_.resize(static_cast<std::size_t>(tiles() * tile_bytes()));
  place_rows(tiles_, tiles(), 1);
  if (rows_ % kLanes != 0) std::fill_n(tiles_.end() - tile_bytes(), tile_bytes(), std::byte{0});
  for_source_rows(part.blocks, part.source, rows_, kLanes, [&](Range rows) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      store_row(part.blocks.data() + row * row_bytes_, row);
    }
  });
}

void BlockMatrix::store_row(const std::byte* from, std::int64_t row) {
  std::byte* tile = tiles_.data() + row / kLanes * tile_bytes();
  const auto bytes = static_cast<std::int64_t>(block_bytes(kernels_->fields));
  for (std::int64_t block = 0; block < blocks_; ++block) {
    store_block(kernels_->fields, from + block * bytes, static_cast<std::size_t>(row % kLanes),
                tile + block * bytes * kLanes);
  }
}

std::int64_t BlockMatrix::stored_bytes() const noexcept { return rows_ * row_bytes_; }

void BlockMatrix::read_row(std::int64_t row, float* to) const {
  const std::byte* tile = tiles_.data() + row / kLanes * tile_bytes();
  for (std::int64_t block = 0; block < blocks_; ++block) {
    kernels_->decode(tile, static_cast<std::size_t>(row % kLanes), to);
    tile += tile_bytes() / blocks_;
    to += kernels_->values;
  }
}

template <class X>
void BlockMatrix::multiply_with(const TileProducts<TileOperands<X>>& products,
                                const RowOperands<X>& operands, Range range) const {
  const auto operands_of = [&](std::int64_t tile, std::int64_t next) -> TileOperands<X> {
    return {.tile = tiles_.data() + tile * tile_bytes(),
            .blocks = blocks_,
            .next_tile = next,
            .x = operands.x,
            .x_stride = operands.x_stride,
            .y = operands.y + tile * kLanes,
            .y_stride = operands.y_stride,
            .lanes = std::min(kLanes, rows_ - tile * kLanes)};
  };
  multiply_range(products, range, rows_ / kLanes, operands.rows, operands_of);
}

void BlockMatrix::multiply(const RowOperands<float>& operands, Range range) const {
  multiply_with(kernels_->float32, operands, range);
}

void BlockMatrix::multiply(const RowOperands<Int8Block>& operands, Range range) const {
  multiply_with(kernels_->int8, operands, range);
}

}  // namespace headroom::measured::blocks
