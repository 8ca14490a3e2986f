// Random numbers of weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "headroom/graph.h"

namespace headroom::measured {

[[nodiscard]] inline std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

/// Standard deviation of a weight's random values: layers keep the scale of their inputs, and
/// embeddings have that scale, so that tokens stay apart beside what the layers add to them.
[[nodiscard]] inline float random_deviation(const Weight& weight,
                                            const std::vector<std::int64_t>& shape) {
  constexpr float kBiasDeviation = 0x1p-5F;
  if (weight.role == WeightRole::embedding) return 1;
  if (shape.size() < 2) return kBiasDeviation;
  const bool has_taps = weight.role == WeightRole::convolution && shape.size() == 3;
  const std::int64_t inputs = shape.back() * (has_taps ? shape[1] : 1);
  return 1 / std::sqrt(static_cast<float>(inputs));
}

/// SplitMix64 (Steele et al. 2014): one multiply–xorshift chain per number, fast enough for
/// billions of weights.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next_bits() {
    state_ += kStep;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }

  /// Fills `bytes` with random bits.
  void fill(std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t bits = next_bits();
      std::memcpy(bytes.data() + at, &bits, std::min(sizeof bits, bytes.size() - at));
    }
  }

  /// Leaves out `count` numbers: the state counts them.
  void skip(std::uint64_t count) { state_ += count * kStep; }

  /// Returns a uniform number in [-1, 1).
  float next() {
    const auto top = static_cast<std::int32_t>(next_bits() >> 32U);
    return static_cast<float>(top) * 0x1p-31F;
  }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  std::uint64_t state_;
};

/// Seed of a weight's numbers.
[[nodiscard]] inline std::uint64_t seed_of(const Weight& weight, std::int64_t layer,
                                           std::uint64_t seed) {
  return seed ^ std::hash<std::string>{}(weight.path) ^ (static_cast<std::uint64_t>(layer) << 40U);
}

}  // namespace headroom::measured
