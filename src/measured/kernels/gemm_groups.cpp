// Linear layers whose weights stay in the codes of a quantised checkpoint: decoded inside the
// product, or multiplied as integers with int8 activations.
#include <algorithm>
#include <utility>
#include <vector>

#include "groups/grouped_matrix.h"
#include "headroom/error.h"
#include "linear_kernels.h"
#include "parallel.h"

namespace headroom::measured {
namespace {

using blocks::Int8Block;
using blocks::kInt8Block;
using groups::GroupedMatrix;

/// Rows of x per pass over the weights: few enough to stay in the second cache.
constexpr std::int64_t kRowsPerPass = 64;

AlignedVector<float>& scale_scratch() {
  thread_local AlignedVector<float> scratch;
  return scratch;
}

/// Scratch of the calling thread for the scales of a tile, of at least `floats` floats.
float* scale_scratch(std::int64_t floats) {
  AlignedVector<float>& scratch = scale_scratch();
  if (static_cast<std::int64_t>(scratch.size()) < floats) {
    scratch = AlignedVector<float>(static_cast<std::size_t>(floats));
  }
  return scratch.data();
}

/// Copies column order[i] of each row of x to column i.
void reorder(const blocks::RowOperands<float>& x, const PooledVector<std::int32_t>& order,
             float* to) {
  const std::int64_t columns = std::ssize(order);
#pragma omp parallel for if (x.rows * columns >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const float* const from = x.x + row * x.x_stride;
    float* const own = to + row * columns;
    for (std::int64_t i = 0; i < columns; ++i) own[i] = from[order[static_cast<std::size_t>(i)]];
  }
}

/// Inputs of a layer in the order of columns and the type that its parts take, computed again only
/// where these differ from those of the part before.
class PartInputs {
 public:
  PartInputs(const float* x, std::int64_t rows, std::int64_t in) : x_(x), rows_(rows), in_(in) {}

  [[nodiscard]] const float* floats(const GroupedMatrix& part) {
    if (part.order().empty()) return x_;
    // Layers that share an input mostly share its order, too.
    if (order_ != nullptr && *order_ == part.order()) return reordered_;
    order_ = &part.order();
    reordered_ = shared_scratch(rows_ * in_);
    reorder({x_, in_, nullptr, 0, rows_}, *order_, reordered_);
    quantised_ = nullptr;
    return reordered_;
  }

  [[nodiscard]] const Int8Block* int8(const GroupedMatrix& part) {
    const float* const columns = floats(part);
    if (quantised_ != columns) blocks_ = quantised_rows(columns, rows_, in_);
    quantised_ = columns;
    return blocks_;
  }

 private:
  const float* x_;
  std::int64_t rows_;
  std::int64_t in_;
  const PooledVector<std::int32_t>* order_ = nullptr;  ///< of `reordered_`
  float* reordered_ = nullptr;
  const float* quantised_ = nullptr;  ///< source of `blocks_`
  const Int8Block* blocks_ = nullptr;
};

/// Parts of a layer, stacked along its output.
class GroupKernel : public LinearKernel {
 public:
  GroupKernel(std::vector<GroupedMatrix> parts, PooledVector<float> bias, std::int64_t in)
      : parts_(std::move(parts)), bias_(std::move(bias)), in_(in) {
    for (const GroupedMatrix& part : parts_) {
      out_ += part.rows();
      scratch_floats_ = std::max(scratch_floats_, part.scratch_floats());
    }
  }

  [[nodiscard]] std::int64_t out() const noexcept { return out_; }

  void prepare(std::int64_t rows) override {
    const auto has_order = [](const GroupedMatrix& part) { return !part.order().empty(); };
    if (std::ranges::any_of(parts_, has_order)) (void)shared_scratch(rows * in_);
    if (std::ranges::any_of(parts_, &GroupedMatrix::takes_int8)) prepare_quantised_rows(rows, in_);
#pragma omp parallel
    (void)scale_scratch(scratch_floats_);
  }

  void run(const float* x, float* y, std::int64_t rows) override {
    PartInputs inputs(x, rows, in_);
    std::int64_t offset = 0;
    for (const GroupedMatrix& part : parts_) {
      if (part.takes_int8()) {
        multiply<Int8Block>(part, {inputs.int8(part), in_ / kInt8Block, y + offset, out_, rows},
                            offset);
      } else {
        multiply<float>(part, {inputs.floats(part), in_, y + offset, out_, rows}, offset);
      }
      offset += part.rows();
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>(bias_.size() * sizeof(float)) + weight_bytes();
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const GroupedMatrix& part : parts_) bytes += part.held_bytes();
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
  void multiply(const GroupedMatrix& part, const blocks::RowOperands<X>& all,
                std::int64_t offset) const {
#pragma omp parallel if (in_ * part.rows() >= kSerialElements)
    {
      const Range tiles = thread_range(part.tiles());
      float* const scratch = scale_scratch(part.scratch_floats());
      for (std::int64_t row = 0; row < all.rows; row += kRowsPerPass) {
        blocks::RowOperands<X> some = all;
        some.x += row * all.x_stride;
        some.y += row * all.y_stride;
        some.rows = std::min(kRowsPerPass, all.rows - row);
        part.multiply(some, tiles, scratch);
        const Range columns{tiles.begin * simd::kLanes,
                            std::min(part.rows(), tiles.end * simd::kLanes)};
        add_bias(some.y, some.rows, offset, columns);
      }
    }
  }

  /// Adds the bias of the part whose first output is `offset` to some of its columns.
  void add_bias(float* y, std::int64_t rows, std::int64_t offset, Range columns) const {
    if (bias_.empty() || columns.size() <= 0) return;
    apply_epilogue(Epilogue::none, bias_.data() + offset + columns.begin,
                   {y + columns.begin, out_, rows, columns.size()});
  }

  std::vector<GroupedMatrix> parts_;
  PooledVector<float> bias_;
  std::int64_t in_;
  std::int64_t out_ = 0;
  std::int64_t scratch_floats_ = 0;
};

}  // namespace

std::int64_t scale_scratch_bytes() {
  return static_cast<std::int64_t>(scale_scratch().size() * sizeof(float));
}

bool has_integer_products(const checkpoint::GroupedWeights& weights) {
  return groups::integer_codes(weights).has_value();
}

PackedKernel make_group_kernel(std::span<const GroupPart> parts, std::int64_t in,
                               ActivationPath path) {
  if (path == ActivationPath::bfloat16) {
    throw Error(ErrorCode::internal, "weights in groups have no bfloat16 products");
  }
  std::vector<GroupedMatrix> matrices;
  matrices.reserve(parts.size());
  PooledVector<float> bias;
  std::size_t rows = 0;
  const auto has_bias = [](const GroupPart& part) { return !part.bias.empty(); };
  const bool any_bias = std::ranges::any_of(parts, has_bias);
  for (const GroupPart& part : parts) {
    matrices.emplace_back(*part.weights, part.source, path);
    rows += static_cast<std::size_t>(part.weights->rows);
    if (!any_bias) continue;
    bias.insert(bias.end(), part.bias.begin(), part.bias.end());
    bias.resize(rows);  // zeros for a part without bias
  }
  auto kernel = std::make_unique<GroupKernel>(std::move(matrices), std::move(bias), in);
  const std::int64_t out = kernel->out();
  return {std::move(kernel), out};
}

}  // namespace headroom::measured
