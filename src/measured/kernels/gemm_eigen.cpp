// Products of many rows with Eigen, which lays its operands out anew in every product: all that
// can be prepared is the order of W.
#include <Eigen/Core>
#include <utility>

#include "linear_kernels.h"
#include "parallel.h"

namespace headroom::measured {

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::OuterStride<>;

/// Columns of y that a thread computes before it finishes them: few enough for its own cache, and
/// enough to be a fast product.
constexpr std::int64_t kColumns = 384;
constexpr std::int64_t kRows = 128;
constexpr std::int64_t kGranule = 16;

class EigenKernel : public LinearKernel {
 public:
  EigenKernel(StackedWeights weights, Epilogue epilogue)
      : weights_(std::move(weights)), epilogue_(epilogue) {}

  void prepare(std::int64_t /*rows*/) override {}

  void run(const float* x, float* y, std::int64_t rows) override {
#pragma omp parallel if (rows * weights_.in * weights_.out >= kSerialElements)
    {
      // Threads share the longer side, so that both get work when there is only one row.
      const bool by_rows = rows >= weights_.out;
      const Range row_range = by_rows ? own_share(rows, kGranule) : Range{0, rows};
      const Range columns = by_rows ? Range{0, weights_.out} : own_share(weights_.out, kGranule);
      multiply(x, y, row_range, columns);
    }
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
    const std::int64_t in = weights_.in;
    const Eigen::Map<const RowMajor> input(x + rows.begin * in, rows.size(), in);
    const Eigen::Map<const RowMajor> weight(weights_.weight.data() + columns.begin * in,
                                            columns.size(), in);
    float* first = y + rows.begin * weights_.out + columns.begin;
    Eigen::Map<RowMajor, 0, Strided> output(first, rows.size(), columns.size(),
                                            Strided(weights_.out));
    if (epilogue_ == Epilogue::add_residual) {
      output.noalias() += input * weight.transpose();
    } else {
      output.noalias() = input * weight.transpose();
    }
    finish(epilogue_, weights_.bias.empty() ? nullptr : weights_.bias.data() + columns.begin,
           {first, weights_.out, rows.size(), columns.size()});
  }

  StackedWeights weights_;
  Epilogue epilogue_;
};

}  // namespace

std::unique_ptr<LinearKernel> make_eigen_kernel(StackedWeights weights,
                                                const LinearOptions& options) {
  return std::make_unique<EigenKernel>(std::move(weights), options.epilogue);
}

}  // namespace headroom::measured
