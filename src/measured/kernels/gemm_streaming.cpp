// Matrix products of few rows, which read the weights once, sequentially, from memory: one dot
// product per row of W and row of x, several rows of W at a time.
#include <array>
#include <utility>

#include "linear_kernels.h"
#include "parallel.h"
#include "simd.h"
#include "weight_stream.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

/// Rows of W per register block: as many as keep the sums in registers. With one row of x only
/// reading matters; these numbers of concurrent streams read fastest.
constexpr std::size_t columns_at_once(std::size_t rows) {
  if (rows == 1) return 8;
  return rows <= 5 ? 4 : 3;
}

/// Operands: y [rows, out], and the slice's part of x in reading order, [steps, rows, pair].
struct Rows {
  const float* x = nullptr;
  float* y = nullptr;
};

/// Columns first, first + stride, … of a register block.
struct Columns {
  std::int64_t first = 0;
  std::int64_t stride = 0;
};

/// y[r, c] = x[r]·W[c] over a slice, for the rows r and columns c of a register block; adds to y if
/// `accumulate`.
template <std::size_t rows, std::size_t columns>
void multiply_block(const WeightStream& stream, Rows at, Range slice, Columns where,
                    bool accumulate) {
  std::array<std::array<Floats, columns>, rows> sums = {};
  const float* weight = stream.weight.data() + stream.offset(slice, where.first);
  const std::int64_t stride = where.stride * slice.size();
  const float* x = at.x;
  for (std::int64_t i = 0; i < slice.size(); i += kStep, weight += kStep) {
    std::array<VectorPair, columns> w;
    simd::unroll<columns>([&](auto c) {
      const float* from = weight + static_cast<std::int64_t>(c) * stride;
      if constexpr (rows > 1) prefetch_pair(from + slice.size());
      w[c] = load_pair(from);
    });
    simd::unroll<2>([&](auto half) {
      simd::unroll<rows>([&](auto r) {
        const Floats values = simd::load(x + static_cast<std::int64_t>(2 * r + half) * kLanes);
        simd::unroll<columns>([&](auto c) { sums[r][c] += values * w[c][half]; });
      });
    });
    x += static_cast<std::int64_t>(rows) * kStep;
  }
  simd::unroll<rows>([&](auto r) {
    float* const y = at.y + static_cast<std::int64_t>(r) * stream.out + where.first;
    simd::unroll<columns>([&](auto c) {
      float& sum = y[static_cast<std::int64_t>(c) * where.stride];
      sum = simd::sum(sums[r][c]) + (accumulate ? sum : 0.0F);
    });
  });
}

/// All columns of `range`, for a constant number of rows.
template <std::size_t rows>
void multiply_range(const WeightStream& stream, Rows at, Range range) {
  constexpr std::size_t kColumns = columns_at_once(rows);
  for (std::int64_t begin = 0; begin < stream.padded_in; begin += stream.slice_in) {
    const Range slice = stream.slice(begin);
    const Rows part = {at.x + static_cast<std::int64_t>(rows) * begin, at.y};
    const bool accumulate = begin > 0 || stream.epilogue == Epilogue::add_residual;
    // Columns of a block are far apart, so that each continues its own stream: the processor
    // prefetches several long streams better than many short ones.
    const std::int64_t stride = range.size() / static_cast<std::int64_t>(kColumns);
    std::int64_t column = range.begin;
    for (; column < range.begin + stride; ++column) {
      multiply_block<rows, kColumns>(stream, part, slice, {column, stride}, accumulate);
    }
    column += (static_cast<std::int64_t>(kColumns) - 1) * stride;
    for (; column < range.end; ++column) {
      multiply_block<rows, 1>(stream, part, slice, {column, 0}, accumulate);
    }
  }
  apply_epilogue(stream.epilogue, stream.bias.empty() ? nullptr : stream.bias.data() + range.begin,
                 {at.y + range.begin, stream.out, static_cast<std::int64_t>(rows), range.size()});
}

/// Calls multiply_range for 1 to 8 `rows`.
template <std::size_t max_rows = PackedLinear::kFewRows>
void dispatch(const WeightStream& stream, Rows at, std::int64_t rows, Range range) {
  if (rows == static_cast<std::int64_t>(max_rows)) {
    multiply_range<max_rows>(stream, at, range);
  } else if constexpr (max_rows > 1) {
    dispatch<max_rows - 1>(stream, at, rows, range);
  }
}

class StreamingKernel : public LinearKernel {
 public:
  using Stream = std::shared_ptr<const WeightStream>;

  explicit StreamingKernel(Stream stream) : shared_(std::move(stream)), stream_(*shared_) {}

  void prepare(std::int64_t /*rows*/) override { (void)scratch(); }

  void run(const float* x, float* y, std::int64_t rows) override {
    for (std::int64_t row = 0; row < rows; row += PackedLinear::kFewRows) {
      const std::int64_t some = std::min(PackedLinear::kFewRows, rows - row);
      const float* const part = interleave(x + row * stream_.in, some);
#pragma omp parallel if (stream_.in * stream_.out >= kSerialElements)
      dispatch(stream_, {part, y + row * stream_.out}, some,
               thread_range(stream_.out, stream_granule(stream_.out, omp_get_num_threads())));
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>((stream_.weight.size() + stream_.bias.size()) * sizeof(float));
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    return stream_.in * stream_.out * static_cast<std::int64_t>(sizeof(float));
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    stream_.for_pieces(row, [&](std::int64_t begin, std::int64_t count, std::int64_t offset) {
      std::copy_n(stream_.weight.data() + offset, count, to + begin);
    });
    return true;
  }

 private:
  [[nodiscard]] float* scratch() const {
    return shared_scratch(stream_.padded_in * PackedLinear::kFewRows);
  }

  /// Reorders x [rows, in] as Rows expects, slice after slice.
  [[nodiscard]] const float* interleave(const float* x, std::int64_t rows) const {
    float* const first = scratch();
    float* to = first;
    for (std::int64_t i = 0; i < stream_.padded_in; i += kStep) {
      for (std::int64_t row = 0; row < rows; ++row, to += kStep) {
        store_pair(x + row * stream_.in + i, stream_.in - i, to);
      }
    }
    return first;
  }

  Stream shared_;
  const WeightStream& stream_;
};

}  // namespace

std::unique_ptr<LinearKernel> make_streaming_kernel(const StackedWeights& weights,
                                                    Epilogue epilogue) {
  return make_streaming_kernel(share_stream(weights, epilogue));
}

std::unique_ptr<LinearKernel> make_streaming_kernel(std::shared_ptr<const WeightStream> stream) {
  return std::make_unique<StreamingKernel>(std::move(stream));
}

}  // namespace headroom::measured
