// How weights are laid out for products of few rows, and read.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "aligned.h"
#include "linear_kernels.h"
#include "parallel.h"
#include "simd.h"

namespace headroom::measured {

/// Inputs that one step multiplies: two vectors, which are one of pairs of bfloat16.
inline constexpr std::int64_t kStep = 2 * simd::kLanes;
/// Inputs of a slice: few enough for eight rows of x to stay in the first cache.
inline constexpr std::int64_t kSlice = 1024;
inline constexpr std::size_t kCacheLine = 64;

/// W [out, in] cut into slices of inputs, each of which holds all of its outputs one after another,
/// so that a slice is read from its first byte to its last. The inputs of the last slice are padded
/// with zeros to whole steps.
template <class Weight>
struct WeightStream {
  PooledVector<Weight> weight;
  PooledVector<float> bias;
  std::int64_t in = 0;
  std::int64_t padded_in = 0;
  std::int64_t out = 0;
  Epilogue epilogue = Epilogue::none;

  [[nodiscard]] Range slice(std::int64_t begin) const {
    return {begin, std::min(padded_in, begin + kSlice)};
  }
  /// Where the inputs of a slice stand for one output.
  [[nodiscard]] std::int64_t place(Range slice, std::int64_t column) const {
    return slice.begin * out + column * slice.size();
  }
  /// Calls piece(first input, how many, place) for the slices of one output.
  template <class Piece>
  void for_pieces(std::int64_t column, const Piece& piece) const {
    for (std::int64_t begin = 0; begin < in; begin += kSlice) {
      const Range inputs = slice(begin);
      piece(begin, std::min(inputs.end, in) - begin, place(inputs, column));
    }
  }
};

using VectorPair = std::array<simd::Floats, 2>;

inline VectorPair load_pair(const float* from) {
  return {simd::load(from), simd::load(from + simd::kLanes)};
}

/// The even and the odd ones of kStep bfloat16s: each is the upper half of a float32.
inline VectorPair load_pair(const std::uint16_t* from) {
  simd::Words words;
  std::memcpy(&words, from, sizeof words);
  return {std::bit_cast<simd::Floats>(words << 16),
          std::bit_cast<simd::Floats>(words & 0xffff0000U)};
}

/// Begins to read what load_pair will.
template <class Weight>
void fetch_pair(const Weight* from) {
  for (std::size_t byte = 0; byte < kStep * sizeof(Weight); byte += kCacheLine) {
    __builtin_prefetch(from + byte / sizeof(Weight));
  }
}

/// Brings the first kStep of `count` inputs into the order of load_pair, zeros behind them.
template <class Weight>
void store_pair(const float* from, std::int64_t count, float* to) {
  std::array<float, kStep> step = {};
  std::copy_n(from, std::min(kStep, count), step.begin());
  for (std::size_t i = 0; i < step.size(); ++i) {
    const std::size_t half = step.size() / 2;
    to[sizeof(Weight) == sizeof(float) ? i : i % 2 * half + i / 2] = step[i];
  }
}

/// A weight as it is stored. Stored bfloat16s are rounded to nearest.
template <class Weight>
Weight stored(float value) {
  if constexpr (std::is_same_v<Weight, float>) {
    return value;
  } else {
    return static_cast<Weight>(std::bit_cast<std::uint32_t>(round_to_bfloat16(value)) >> 16);
  }
}

template <class Weight>
float restored(Weight weight) {
  if constexpr (std::is_same_v<Weight, float>) {
    return weight;
  } else {
    return std::bit_cast<float>(std::uint32_t{weight} << 16);
  }
}

template <class Weight>
WeightStream<Weight> make_stream(const StackedWeights& weights, Epilogue epilogue) {
  WeightStream<Weight> stream;
  stream.bias = weights.bias;
  stream.in = weights.in;
  stream.out = weights.out;
  stream.padded_in = (weights.in + kStep - 1) / kStep * kStep;
  stream.epilogue = epilogue;
  stream.weight.resize(static_cast<std::size_t>(stream.out * stream.padded_in));
  std::int64_t first = 0;
  for (const LinearPart& part : weights.parts) {
    const std::int64_t columns = static_cast<std::int64_t>(part.weight.size()) / stream.in;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < columns; ++i) {
      const float* const from = part.weight.data() + i * stream.in;
      stream.for_pieces(first + i, [&](std::int64_t begin, std::int64_t count, std::int64_t place) {
        std::transform(from + begin, from + begin + count, stream.weight.data() + place,
                       stored<Weight>);
      });
    }
    first += columns;
  }
  return stream;
}

}  // namespace headroom::measured
