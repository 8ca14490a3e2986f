// Linear layers whose weights stay in ggml's blocks and are decoded inside the product.
#include <algorithm>
#include <utility>
#include <vector>

#include "blocks/block_matrix.h"
#include "headroom/error.h"
#include "linear_kernels.h"
#include "packed_parts.h"
#include "parallel.h"

namespace headroom::measured {
namespace {

using blocks::BlockMatrix;
using blocks::Int8Block;
using blocks::kInt8Block;

AlignedVector<Int8Block>& int8_scratch() {
  thread_local AlignedVector<Int8Block> scratch;
  return scratch;
}

/// Scratch of at least `count` blocks; growing it drops its contents.
Int8Block* int8_scratch(std::int64_t count) {
  AlignedVector<Int8Block>& scratch = int8_scratch();
  if (static_cast<std::int64_t>(scratch.size()) < count) {
    scratch = AlignedVector<Int8Block>(static_cast<std::size_t>(count));
  }
  return scratch.data();
}

class BlockKernel : public PartsKernel<BlockMatrix> {
 public:
  BlockKernel(std::vector<BlockMatrix> parts, PooledVector<float> bias, std::int64_t in,
              ActivationPath path)
      : PartsKernel(std::move(parts), std::move(bias), in), path_(path) {}

  void prepare(std::int64_t rows) override {
    if (path_ == ActivationPath::int8) prepare_quantised_rows(rows, in());
  }

  void run(const float* x, float* y, std::int64_t rows) override {
    switch (path_) {
      case ActivationPath::float32:
        multiply<float>({x, in(), y, out(), rows});
        return;
      case ActivationPath::int8:
        multiply<Int8Block>({quantised_rows(x, rows, in()), in() / kInt8Block, y, out(), rows});
        return;
      case ActivationPath::bfloat16:  // make_block_kernel refuses it
        return;
    }
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const BlockMatrix& part : parts()) bytes += part.stored_bytes();
    return bytes;
  }

 private:
  template <class X>
  void multiply(const blocks::RowOperands<X>& all) const {
#pragma omp parallel if (in() * out() >= kSerialElements)
    for_passes(all, [this](blocks::RowOperands<X> some) {
      std::int64_t offset = 0;
      for (const BlockMatrix& part : parts()) {
        const Range tiles = thread_range(part.tiles());
        part.multiply(some, tiles);
        add_bias(some.y, some.rows, part, offset, tiles);
        some.y += part.rows();
        offset += part.rows();
      }
    });
  }

  ActivationPath path_;
};

}  // namespace

bool has_block_kernels(checkpoint::GgmlType type) noexcept {
  return blocks::find_kernels(type) != nullptr;
}

void prepare_quantised_rows(std::int64_t rows, std::int64_t in) {
  (void)int8_scratch(rows * (in / kInt8Block));
}

const Int8Block* quantised_rows(const float* x, std::int64_t rows, std::int64_t in) {
  const std::int64_t row_blocks = in / kInt8Block;
  Int8Block* const to = int8_scratch(rows * row_blocks);
#pragma omp parallel for if (rows * in >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    blocks::quantise_row(x + row * in, row_blocks, to + row * row_blocks);
  }
  return to;
}

std::int64_t int8_scratch_bytes() {
  return static_cast<std::int64_t>(int8_scratch().size() * sizeof(Int8Block));
}

PackedKernel make_block_kernel(std::span<const BlockPart> parts, std::int64_t in,
                               ActivationPath path) {
  if (path == ActivationPath::bfloat16) {
    throw Error(ErrorCode::internal, "weights in blocks have no bfloat16 products");
  }
  std::vector<BlockMatrix> matrices;
  for (const BlockPart& part : parts) matrices.emplace_back(part, in);
  PooledVector<float> bias = stacked_bias(parts, matrices);
  auto kernel = std::make_unique<BlockKernel>(std::move(matrices), std::move(bias), in, path);
  const std::int64_t out = kernel->out();
  return {std::move(kernel), out};
}

}  // namespace headroom::measured
