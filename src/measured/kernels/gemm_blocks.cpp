// Linear layers whose weights stay in ggml's blocks and are decoded inside the product.
#include <algorithm>
#include <utility>
#include <vector>

#include "blocks/block_matrix.h"
#include "headroom/error.h"
#include "linear_kernels.h"
#include "parallel.h"

namespace headroom::measured {
namespace {

using blocks::BlockMatrix;
using blocks::Int8Block;
using blocks::kInt8Block;

/// Rows of x per pass over the weights: few enough to stay in the second cache.
constexpr std::int64_t kRowsPerPass = 64;

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

/// Parts of a layer, stacked along its output.
class BlockKernel : public LinearKernel {
 public:
  BlockKernel(std::vector<BlockMatrix> parts, PooledVector<float> bias, std::int64_t in,
              ActivationPath path)
      : parts_(std::move(parts)), bias_(std::move(bias)), in_(in), path_(path) {
    for (const BlockMatrix& part : parts_) out_ += part.rows();
  }

  [[nodiscard]] std::int64_t out() const noexcept { return out_; }

  void prepare(std::int64_t rows) override {
    if (path_ == ActivationPath::int8) prepare_quantised_rows(rows, in_);
  }

  void run(const float* x, float* y, std::int64_t rows) override {
    switch (path_) {
      case ActivationPath::float32:
        multiply<float>({x, in_, y, out_, rows});
        return;
      case ActivationPath::int8:
        multiply<Int8Block>({quantised_rows(x, rows, in_), in_ / kInt8Block, y, out_, rows});
        return;
      case ActivationPath::bfloat16:  // make_block_kernel refuses it
        return;
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    auto bytes = static_cast<std::int64_t>(bias_.size() * sizeof(float));
    for (const BlockMatrix& part : parts_) bytes += part.held_bytes();
    return bytes;
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const BlockMatrix& part : parts_) bytes += part.stored_bytes();
    return bytes;
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    auto part = parts_.begin();
    for (; row >= part->rows(); ++part) row -= part->rows();
    part->read_row(row, to);
    return true;
  }

 private:
  template <class X>
  void multiply(const blocks::RowOperands<X>& all) const {
#pragma omp parallel if (in_ * out_ >= kSerialElements)
    for (std::int64_t row = 0; row < all.rows; row += kRowsPerPass) {
      blocks::RowOperands<X> some = all;
      some.x += row * all.x_stride;
      some.y += row * all.y_stride;
      some.rows = std::min(kRowsPerPass, all.rows - row);
      for (const BlockMatrix& part : parts_) {
        const Range tiles = thread_range(part.tiles());
        part.multiply(some, tiles);
        const Range columns{tiles.begin * blocks::kLanes,
                            std::min(part.rows(), tiles.end * blocks::kLanes)};
        add_bias(some.y, some.rows, part_offset(part), columns);
        some.y += part.rows();
      }
    }
  }

  [[nodiscard]] std::int64_t part_offset(const BlockMatrix& part) const {
    std::int64_t offset = 0;
    for (const BlockMatrix* before = parts_.data(); before != &part; ++before) {
      offset += before->rows();
    }
    return offset;
  }

  /// Adds the bias of the part whose first output is `offset` to some of its columns.
  void add_bias(float* y, std::int64_t rows, std::int64_t offset, Range columns) const {
    if (bias_.empty() || columns.size() <= 0) return;
    apply_epilogue(Epilogue::none, bias_.data() + offset + columns.begin,
                   {y + columns.begin, out_, rows, columns.size()});
  }

  std::vector<BlockMatrix> parts_;
  PooledVector<float> bias_;
  std::int64_t in_;
  std::int64_t out_ = 0;
  ActivationPath path_;
};

/// Biases of all parts, zeros for those without; empty if no part has one.
PooledVector<float> stacked_bias(std::span<const BlockPart> parts,
                                 const std::vector<BlockMatrix>& matrices) {
  PooledVector<float> bias;
  const auto has_none = [](const BlockPart& part) { return part.bias.empty(); };
  if (std::ranges::all_of(parts, has_none)) return bias;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bias.insert(bias.end(), parts[i].bias.begin(), parts[i].bias.end());
    rows += static_cast<std::size_t>(matrices[i].rows());
    bias.resize(rows);
  }
  return bias;
}

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
