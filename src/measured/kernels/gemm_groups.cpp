// Linear layers whose weights stay in the codes of a quantised checkpoint: decoded inside the
// product, or multiplied as integers with int8 activations.
#include <algorithm>
#include <utility>
#include <vector>

#include "groups/grouped_matrix.h"
#include "headroom/error.h"
#include "linear_kernels.h"
#include "packed_parts.h"
#include "parallel.h"

namespace headroom::measured {
namespace {

using blocks::Int8Block;
using blocks::kInt8Block;
using groups::GroupedMatrix;

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

class GroupKernel : public PartsKernel<GroupedMatrix> {
 public:
  GroupKernel(std::vector<GroupedMatrix> all, PooledVector<float> bias, std::int64_t in)
      : PartsKernel(std::move(all), std::move(bias), in) {
    for (const GroupedMatrix& part : parts()) {
      scratch_floats_ = std::max(scratch_floats_, part.scratch_floats());
    }
  }

  void prepare(std::int64_t rows) override {
    const auto has_order = [](const GroupedMatrix& part) { return !part.order().empty(); };
    if (std::ranges::any_of(parts(), has_order)) (void)shared_scratch(rows * in());
    if (std::ranges::any_of(parts(), &GroupedMatrix::takes_int8)) {
      prepare_quantised_rows(rows, in());
    }
#pragma omp parallel
    (void)scale_scratch(scratch_floats_);
  }

  void run(const float* x, float* y, std::int64_t rows) override {
    PartInputs inputs(x, rows, in());
    std::int64_t offset = 0;
    for (const GroupedMatrix& part : parts()) {
      if (part.takes_int8()) {
        multiply<Int8Block>(part, {inputs.int8(part), in() / kInt8Block, y + offset, out(), rows},
                            offset);
      } else {
        multiply<float>(part, {inputs.floats(part), in(), y + offset, out(), rows}, offset);
      }
      offset += part.rows();
    }
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const GroupedMatrix& part : parts()) bytes += part.held_bytes();
    return bytes;
  }

 private:
  template <class X>
  void multiply(const GroupedMatrix& part, const blocks::RowOperands<X>& all,
                std::int64_t offset) const {
#pragma omp parallel if (in() * part.rows() >= kSerialElements)
    {
      const Range tiles = thread_range(part.tiles());
      float* const scratch = scale_scratch(part.scratch_floats());
      for_passes(all, [&](const blocks::RowOperands<X>& some) {
        part.multiply(some, tiles, scratch);
        add_bias(some.y, some.rows, part, offset, tiles);
      });
    }
  }

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
  for (const GroupPart& part : parts) {
    matrices.emplace_back(*part.weights, part.source, path);
  }
  PooledVector<float> bias = stacked_bias(parts, matrices);
  auto kernel = std::make_unique<GroupKernel>(std::move(matrices), std::move(bias), in);
  const std::int64_t out = kernel->out();
  return {std::move(kernel), out};
}

}  // namespace headroom::measured
