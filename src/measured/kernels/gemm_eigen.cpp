// Matrix products of many rows with Eigen, which repacks its operands in every product; only the
// order of W can be prepared.
#include <Eigen/Core>
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "linear_kernels.h"
#include "parallel.h"
#include "stacked_rows.h"
#include "weight_stream.h"

namespace headroom::measured {

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::OuterStride<>;
using ConstMap = Eigen::Map<const RowMajor, 0, Strided>;

/// Columns of y per block of a thread: few enough to stay in its cache until the epilogue, enough
/// for a fast product.
constexpr std::int64_t kColumns = 384;
constexpr std::int64_t kRows = 128;
constexpr std::int64_t kGranule = 16;

/// Inputs [begin, begin + count) of all outputs, rows of `stride` floats.
struct WeightSlice {
  const float* first = nullptr;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t stride = 0;
};

class EigenKernel : public LinearKernel {
 public:
  EigenKernel(const StackedWeights& weights, Epilogue epilogue)
      : in_(weights.in),
        out_(weights.out),
        weight_(static_cast<std::size_t>(in_ * out_)),
        bias_(weights.bias),
        epilogue_(epilogue),
        slices_{{weight_.data(), 0, in_, in_}} {
    StackedRows(weights).for_slices(1, [&](Range rows, const float* values) {
      std::copy_n(values, rows.size() * in_, weight_.data() + rows.begin * in_);
    });
  }

  /// With the layout of a kernel for few rows, which holds it, too.
  explicit EigenKernel(std::shared_ptr<const WeightStream> stream)
      : in_(stream->in),
        out_(stream->out),
        epilogue_(stream->epilogue),
        stream_(std::move(stream)) {
    for (std::int64_t begin = 0; begin < in_; begin += stream_->slice_in) {
      const Range slice = stream_->slice(begin);
      slices_.push_back({stream_->weight.data() + stream_->offset(slice, 0), begin,
                         std::min(slice.end, in_) - begin, slice.size()});
    }
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
    return in_ * out_ * static_cast<std::int64_t>(sizeof(float));
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    for (const WeightSlice& slice : slices_) {
      std::copy_n(slice.first + row * slice.stride, slice.count, to + slice.begin);
    }
    return true;
  }

  [[nodiscard]] std::unique_ptr<LinearKernel> kernel_of_few_rows() override {
    return stream_ == nullptr ? nullptr : make_streaming_kernel(stream_);
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

  [[nodiscard]] const PooledVector<float>& bias() const {
    return stream_ == nullptr ? bias_ : stream_->bias;
  }

  void multiply_block(const float* x, float* y, Range rows, Range columns) const {
    float* first = y + rows.begin * out_ + columns.begin;
    Eigen::Map<RowMajor, 0, Strided> output(first, rows.size(), columns.size(), Strided(out_));
    for (const WeightSlice& slice : slices_) {
      const ConstMap input(x + rows.begin * in_ + slice.begin, rows.size(), slice.count,
                           Strided(in_));
      const ConstMap weight(slice.first + columns.begin * slice.stride, columns.size(), slice.count,
                            Strided(slice.stride));
      if (slice.begin > 0 || epilogue_ == Epilogue::add_residual) {
        output.noalias() += input * weight.transpose();
      } else {
        output.noalias() = input * weight.transpose();
      }
    }
    apply_epilogue(epilogue_, bias().empty() ? nullptr : bias().data() + columns.begin,
                   {first, out_, rows.size(), columns.size()});
  }

  std::int64_t in_;
  std::int64_t out_;
  UnfilledVector<float> weight_;  ///< empty, as bias_, with `stream_`
  PooledVector<float> bias_;
  Epilogue epilogue_;
  std::shared_ptr<const WeightStream> stream_;  ///< null: `weight_`
  std::vector<WeightSlice> slices_;
};

}  // namespace

std::unique_ptr<LinearKernel> make_eigen_kernel(const StackedWeights& weights,
                                                const LinearOptions& options) {
  if (options.rows == RowRange::both) {
    return std::make_unique<EigenKernel>(share_stream(weights, options.epilogue));
  }
  return std::make_unique<EigenKernel>(weights, options.epilogue);
}

}  // namespace headroom::measured
