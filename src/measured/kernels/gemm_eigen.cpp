// Matrix products of many rows with Eigen, which repacks its operands in every product; only the
// order of W can be prepared.
#include <Eigen/Core>
#include <algorithm>

#include "linear_kernels.h"
#include "parallel.h"

namespace headroom::measured {

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::OuterStride<>;

/// Columns of y per block of a thread: few enough to stay in its cache until the epilogue, enough
/// for a fast product.
constexpr std::int64_t kColumns = 384;
constexpr std::int64_t kRows = 128;
constexpr std::int64_t kGranule = 16;

class EigenKernel : public LinearKernel {
 public:
  EigenKernel(const StackedWeights& weights, Epilogue epilogue)
      : in_(weights.in),
        out_(weights.out),
        weight_(static_cast<std::size_t>(in_ * out_)),
        bias_(weights.bias),
        epilogue_(epilogue) {
    copy_weights(weights, weight_.data());
  }

  void prepare(std::int64_t /*rows*/) override {}

  void run(const float* x, float* y, std::int64_t rows) override {
#pragma omp parallel if (rows * in_ * out_ >= kSerialElements)
    {
      // Threads split the longer side, so that all get work even with one row.
      const bool by_rows = rows >= out_;
      const Range row_range = by_rows ? thread_range(rows, kGranule) : Range{0, rows};
      const Range columns = by_rows ? Range{0, out_} : thread_range(out_, kGranule);
      multiply(x, y, row_range, columns);
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>((weight_.size() + bias_.size()) * sizeof(float));
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    return static_cast<std::int64_t>(weight_.size() * sizeof(float));
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    std::copy_n(weight_.data() + row * in_, in_, to);
    return true;
  }

 private:
  void multiply(const float* x, float* y, Range rows, Range columns) const {
    for (std::int64_t column = columns.begin; column < columns.end; column += kColumns) {
      const Range some = {column, std::min(columns.end, column + kColumns)};
      for (std::int64_t row = rows.begin; row < rows.end; row += kRows) {
        multiply_block(x, y, {row, std::min(rows.end, row + kRows)}, some);
      }
    }
  }

  void multiply_block(const float* x, float* y, Range rows, Range columns) const {
    const Eigen::Map<const RowMajor> input(x + rows.begin * in_, rows.size(), in_);
    const Eigen::Map<const RowMajor> weight(weight_.data() + columns.begin * in_, columns.size(),
                                            in_);
    float* first = y + rows.begin * out_ + columns.begin;
    Eigen::Map<RowMajor, 0, Strided> output(first, rows.size(), columns.size(), Strided(out_));
    if (epilogue_ == Epilogue::add_residual) {
      output.noalias() += input * weight.transpose();
    } else {
      output.noalias() = input * weight.transpose();
    }
    apply_epilogue(epilogue_, bias_.empty() ? nullptr : bias_.data() + columns.begin,
                   {first, out_, rows.size(), columns.size()});
  }

  std::int64_t in_;
  std::int64_t out_;
  PooledVector<float> weight_;
  PooledVector<float> bias_;
  Epilogue epilogue_;
};

}  // namespace

std::unique_ptr<LinearKernel> make_eigen_kernel(const StackedWeights& weights,
                                                const LinearOptions& options) {
  return std::make_unique<EigenKernel>(weights, options.epilogue);
}

}  // namespace headroom::measured
