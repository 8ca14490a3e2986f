// Linear layers of parts whose weights stay packed, stacked along the output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "blocks/int8_rows.h"
#include "linear_kernels.h"
#include "parallel.h"
#include "simd.h"

namespace headroom::measured {

/// Rows of x per pass over the weights: few enough to stay in the second cache.
inline constexpr std::int64_t kRowsPerPass = 64;

/// Calls visit(some) for the rows of each pass.
template <class X, class Visit>
void for_passes(const blocks::RowOperands<X>& all, const Visit& visit) {
  for (std::int64_t row = 0; row < all.rows; row += kRowsPerPass) {
    blocks::RowOperands<X> some = all;
    some.x += row * all.x_stride;
    some.y += row * all.y_stride;
    some.rows = std::min(kRowsPerPass, all.rows - row);
    visit(some);
  }
}

/// Biases of all parts, zeros for those without; empty if no part has one.
template <class Part, class Matrix>
PooledVector<float> stacked_bias(std::span<const Part> parts, const std::vector<Matrix>& matrices) {
  PooledVector<float> bias;
  const auto has_none = [](const Part& part) { return part.bias.empty(); };
  if (std::ranges::all_of(parts, has_none)) return bias;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bias.insert(bias.end(), parts[i].bias.begin(), parts[i].bias.end());
    rows += static_cast<std::size_t>(matrices[i].rows());
    bias.resize(rows);
  }
  return bias;
}

/// Holds the parts of a layer, matrices in tiles of kLanes rows, and their biases.
template <class Matrix>
class PartsKernel : public LinearKernel {
 public:
  PartsKernel(std::vector<Matrix> parts, PooledVector<float> bias, std::int64_t in)
      : parts_(std::move(parts)), bias_(std::move(bias)), in_(in) {
    for (const Matrix& part : parts_) out_ += part.rows();
  }

  [[nodiscard]] std::int64_t out() const noexcept { return out_; }

  [[nodiscard]] std::int64_t held_bytes() const override {
    auto bytes = static_cast<std::int64_t>(bias_.size() * sizeof(float));
    for (const Matrix& part : parts_) bytes += part.held_bytes();
    return bytes;
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    auto part = parts_.begin();
    for (; row >= part->rows(); ++part) row -= part->rows();
    part->read_row(row, to);
    return true;
  }

 protected:
  [[nodiscard]] const std::vector<Matrix>& parts() const noexcept { return parts_; }
  [[nodiscard]] std::int64_t in() const noexcept { return in_; }

  /// Adds the biases of outputs in `tiles` of a part to `rows` rows of y, whose first column is the
  /// part's; `offset` is the part's first output.
  void add_bias(float* y, std::int64_t rows, const Matrix& part, std::int64_t offset,
                Range tiles) const {
    const std::int64_t begin = tiles.begin * simd::kLanes;
    const std::int64_t end = std::min(part.rows(), tiles.end * simd::kLanes);
    if (bias_.empty() || begin >= end) return;
    apply_epilogue(Epilogue::none, bias_.data() + offset + begin,
                   {y + begin, out_, rows, end - begin});
  }

 private:
  std::vector<Matrix> parts_;
  PooledVector<float> bias_;
  std::int64_t in_;
  std::int64_t out_ = 0;
};

}  // namespace headroom::measured
