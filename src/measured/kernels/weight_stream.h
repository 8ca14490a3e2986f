// Layout of float32 weights for matrix products of few rows, and its readers.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "aligned.h"
#include "cache_line.h"
#include "headroom/expr.h"
#include "linear_kernels.h"
#include "memory_nodes.h"
#include "parallel.h"
#include "simd.h"
#include "source_rows.h"

namespace headroom::measured {

/// Inputs per step: two vectors.
inline constexpr std::int64_t kStep = 2 * simd::kLanes;
/// Inputs per slice: few enough for eight rows of x to stay in L1.
inline constexpr std::int64_t kSlice = 1024;

/// W [out, in] in slices of inputs. A slice stores all its outputs one after another, so it is read
/// sequentially. The last slice is padded with zeros to whole steps.
struct WeightStream {
  UnfilledVector<float> weight;
  PooledVector<float> bias;
  std::int64_t in = 0;
  std::int64_t padded_in = 0;
  std::int64_t out = 0;
  std::int64_t slice_in = kSlice;  ///< inputs per slice
  Epilogue epilogue = Epilogue::none;

  [[nodiscard]] Range slice(std::int64_t begin) const {
    return {begin, std::min(padded_in, begin + slice_in)};
  }
  /// Offset of one output's inputs in a slice.
  [[nodiscard]] std::int64_t offset(Range slice, std::int64_t column) const {
    return slice.begin * out + column * slice.size();
  }
  /// Writes `from`, the `in` inputs of one output, and zeros behind them.
  void store(std::int64_t column, const float* from) {
    for_pieces(column, [&](std::int64_t begin, std::int64_t count, std::int64_t offset) {
      float* const to = weight.data() + offset;
      std::copy_n(from + begin, count, to);
      std::fill(to + count, to + slice(begin).size(), 0.0F);
    });
  }
  /// Calls piece(first input, count, offset) for the slices of one output.
  template <class Piece>
  void for_pieces(std::int64_t column, const Piece& piece) const {
    for (std::int64_t begin = 0; begin < in; begin += slice_in) {
      const Range inputs = slice(begin);
      piece(begin, std::min(inputs.end, in) - begin, offset(inputs, column));
    }
  }
};

using VectorPair = std::array<simd::Floats, 2>;

inline VectorPair load_pair(const float* from) {
  return {simd::load(from), simd::load(from + simd::kLanes)};
}

/// Prefetches the operand of load_pair.
inline void prefetch_pair(const float* from) {
  for (std::int64_t i = 0; i < kStep; i += kCacheLineFloats) __builtin_prefetch(from + i);
}

/// Copies the first kStep of `count` inputs, zeros after the last.
inline void store_pair(const float* from, std::int64_t count, float* to) {
  const std::int64_t some = std::min(kStep, count);
  std::copy_n(from, some, to);
  std::fill(to + some, to + kStep, 0.0F);
}

/// Threads split the outputs of a stream in multiples of this: a multiple of the outputs of every
/// register block, or the values of a cache line where that would leave threads idle.
inline std::int64_t stream_granule(std::int64_t outputs, std::int64_t threads) {
  constexpr std::int64_t kWide = 48;
  return is_balanced(outputs, kWide, threads) ? kWide : kCacheLineFloats;
}

/// Puts each slice's outputs on the nodes of the threads that read them.
inline void place_stream(const WeightStream& stream) {
  const std::int64_t granule = stream_granule(stream.out, omp_get_max_threads());
  for (std::int64_t begin = 0; begin < stream.padded_in; begin += stream.slice_in) {
    const Range slice = stream.slice(begin);
    const auto first = static_cast<std::size_t>(stream.offset(slice, 0));
    const auto count = static_cast<std::size_t>(slice.size() * stream.out);
    place_rows(std::as_bytes(std::span(stream.weight).subspan(first, count)), stream.out, granule);
  }
}

/// Slices of a stream: short ones are read fastest; whole rows are a plain matrix.
enum class StreamSlices { short_ones, whole_rows };

inline WeightStream make_stream(const StackedWeights& weights, Epilogue epilogue,
                                StreamSlices slices) {
  WeightStream stream;
  stream.bias = weights.bias;
  stream.in = weights.in;
  stream.out = weights.out;
  stream.padded_in = round_up(weights.in, kStep);
  if (slices == StreamSlices::whole_rows) stream.slice_in = stream.padded_in;
  stream.epilogue = epilogue;
  stream.weight.resize(static_cast<std::size_t>(stream.out * stream.padded_in));
  place_stream(stream);
  std::int64_t first = 0;
  for (const LinearPart& part : weights.parts) {
    const std::int64_t columns = std::ssize(part.weight) / stream.in;
    for_source_rows(std::as_bytes(part.weight), part.source, columns, 1, [&](Range some) {
#pragma omp parallel for schedule(static)
      for (std::int64_t i = some.begin; i < some.end; ++i) {
        stream.store(first + i, part.weight.data() + i * stream.in);
      }
    });
    first += columns;
  }
  return stream;
}

inline std::shared_ptr<const WeightStream> share_stream(
    const StackedWeights& weights, Epilogue epilogue,
    StreamSlices slices = StreamSlices::short_ones) {
  return std::make_shared<const WeightStream>(make_stream(weights, epilogue, slices));
}

}  // namespace headroom::measured
