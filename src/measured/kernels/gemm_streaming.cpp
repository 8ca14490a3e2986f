// Products of few rows with a weight matrix that is read once, from memory and in order: a dot
// product for every row of W and of x, several rows of W at a time.
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

/// Columns are shared among threads by this many.
constexpr std::int64_t kGranule = 48;

/// Rows of W to multiply at a time: as many as leave the sums in registers. One row of x is so
/// little work that reading is all that counts; these numbers of streams read fastest.
template <class Weight>
constexpr std::size_t columns_at_once(std::size_t rows) {
  if (rows == 1) return sizeof(Weight) == sizeof(float) ? 8 : 4;
  return rows <= 5 ? 4 : 3;
}

/// Operands: y [rows, out], and the slice's part of x in the order in which it is read,
/// [steps, rows, pair].
struct Rows {
  const float* x = nullptr;
  float* y = nullptr;
};

/// Columns first, first + stride, … of one register block.
struct Columns {
  std::int64_t first = 0;
  std::int64_t stride = 0;
};

/// y[r, c] = x[r]·W[c] over a slice for the rows r and columns c of one register block; where y is
/// to be `gone_on` from, the product is added to it.
template <std::size_t rows, std::size_t columns, class Weight>
void multiply_block(const WeightStream<Weight>& stream, Rows at, Range slice, Columns where,
                    bool gone_on) {
  std::array<std::array<Floats, columns>, rows> sums = {};
  const Weight* weight = stream.weight.data() + stream.place(slice, where.first);
  const std::int64_t stride = where.stride * slice.size();
  const float* x = at.x;
  for (std::int64_t i = 0; i < slice.size(); i += kStep, weight += kStep) {
    std::array<VectorPair, columns> w;
    simd::unroll<columns>([&](auto c) {
      const Weight* from = weight + static_cast<std::int64_t>(c) * stride;
      if constexpr (rows > 1) fetch_pair(from + slice.size());
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
      sum = simd::sum(sums[r][c]) + (gone_on ? sum : 0.0F);
    });
  });
}

/// All columns of `range` for a constant number of rows.
template <std::size_t rows, class Weight>
void multiply_range(const WeightStream<Weight>& stream, Rows at, Range range) {
  constexpr std::size_t kColumns = columns_at_once<Weight>(rows);
  for (std::int64_t begin = 0; begin < stream.padded_in; begin += kSlice) {
    const Range slice = stream.slice(begin);
    const Rows part = {at.x + static_cast<std::int64_t>(rows) * begin, at.y};
    const bool gone_on = begin > 0 || stream.epilogue == Epilogue::add_residual;
    // The columns of a block stand far apart, so that each is the next piece of a stream of its
    // own: the processor fetches ahead of several long streams better than of many short ones.
    const std::int64_t stride = range.size() / static_cast<std::int64_t>(kColumns);
    std::int64_t column = range.begin;
    for (; column < range.begin + stride; ++column) {
      multiply_block<rows, kColumns>(stream, part, slice, {column, stride}, gone_on);
    }
    column += (static_cast<std::int64_t>(kColumns) - 1) * stride;
    for (; column < range.end; ++column) {
      multiply_block<rows, 1>(stream, part, slice, {column, 0}, gone_on);
    }
  }
  finish(stream.epilogue, stream.bias.empty() ? nullptr : stream.bias.data() + range.begin,
         {at.y + range.begin, stream.out, static_cast<std::int64_t>(rows), range.size()});
}

/// multiply_range for `rows` of one to eight.
template <class Weight, std::size_t most = PackedLinear::kFewRows>
void dispatch(const WeightStream<Weight>& stream, Rows at, std::int64_t rows, Range range) {
  if (rows == static_cast<std::int64_t>(most)) {
    multiply_range<most>(stream, at, range);
  } else if constexpr (most > 1) {
    dispatch<Weight, most - 1>(stream, at, rows, range);
  }
}

template <class Weight>
class StreamingKernel : public LinearKernel {
 public:
  explicit StreamingKernel(WeightStream<Weight> stream) : stream_(std::move(stream)) {}

  void prepare(std::int64_t /*rows*/) override { (void)scratch(); }

  void run(const float* x, float* y, std::int64_t rows) override {
    for (std::int64_t row = 0; row < rows; row += PackedLinear::kFewRows) {
      const std::int64_t some = std::min(PackedLinear::kFewRows, rows - row);
      const float* const part = interleave(x + row * stream_.in, some);
#pragma omp parallel if (stream_.in * stream_.out >= kSerialElements)
      dispatch(stream_, {part, y + row * stream_.out}, some, own_share(stream_.out, kGranule));
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>(stream_.weight.size() * sizeof(Weight) +
                                     stream_.bias.size() * sizeof(float));
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    stream_.for_pieces(row, [&](std::int64_t begin, std::int64_t count, std::int64_t place) {
      const Weight* const from = stream_.weight.data() + place;
      std::transform(from, from + count, to + begin, restored<Weight>);
    });
    return true;
  }

 private:
  [[nodiscard]] float* scratch() const {
    return shared_scratch(stream_.padded_in * PackedLinear::kFewRows);
  }

  /// x [rows, in] in the order of Rows, all slices one after another.
  [[nodiscard]] const float* interleave(const float* x, std::int64_t rows) const {
    float* const first = scratch();
    float* to = first;
    for (std::int64_t i = 0; i < stream_.padded_in; i += kStep) {
      for (std::int64_t row = 0; row < rows; ++row, to += kStep) {
        store_pair<Weight>(x + row * stream_.in + i, stream_.in - i, to);
      }
    }
    return first;
  }

  WeightStream<Weight> stream_;
};

}  // namespace

std::unique_ptr<LinearKernel> make_streaming_kernel(const StackedWeights& weights,
                                                    const LinearOptions& options) {
  switch (options.storage) {
    case WeightStorage::float32:
      return std::make_unique<StreamingKernel<float>>(
          make_stream<float>(weights, options.epilogue));
    case WeightStorage::bfloat16:
      return std::make_unique<StreamingKernel<std::uint16_t>>(
          make_stream<std::uint16_t>(weights, options.epilogue));
  }
  return nullptr;
}

}  // namespace headroom::measured
