#include "int8_rows.h"

#include <cmath>
#include <limits>

#include "simd.h"

namespace headroom::measured::blocks {
namespace {

using simd::Floats;
using simd::Ints;
using simd::kLanes;

constexpr std::size_t kVectors = kInt8Block / kLanes;
using BlockValues = std::array<Floats, kVectors>;

Floats absolute(Floats value) { return simd::max(value, -value); }

/// 127/max|x|; 0 for a block of zeros, NaN for one that is not finite.
float inverse_scale(const BlockValues& x) {
  Floats largest = {};
  Floats zeros = {};
  for (const Floats& values : x) {
    largest = simd::max(largest, absolute(values));
    zeros += values * 0.0F;  // NaN for infinities, too, which max() may drop
  }
  const float most = simd::largest(largest);
  const float inverse = most > 0 ? 127.0F / most : 0.0F;
  // 127/most overflows for subnormal numbers, which count as zeros.
  return (std::isinf(inverse) ? 0.0F : inverse) + simd::sum(zeros);
}

/// Rounds to nearest, ties to even; |value| is at most 127.
Ints round_to_ints(Floats value) {
  constexpr float kShift = 0x1.8p23F;  // moves the unit into the last bit of the mantissa
  return __builtin_convertvector((value + kShift) - kShift, Ints);
}

void quantise_block(const float* x, Int8Block& to) {
  BlockValues values;
  for (std::size_t i = 0; i < kVectors; ++i) {
    values[i] = simd::load(x + static_cast<std::int64_t>(i) * kLanes);
  }
  const float inverse = inverse_scale(values);
  if (std::isnan(inverse)) {
    to = {std::numeric_limits<float>::quiet_NaN(), 0, {}, {}};
    return;
  }
  std::array<std::int32_t, 2> sums{};
  std::array<std::int32_t, kInt8Block> rounded;
  for (std::size_t i = 0; i < kVectors; ++i) {
    const Ints ints = round_to_ints(values[i] * inverse);
    std::memcpy(rounded.data() + i * kLanes, &ints, sizeof ints);
  }
  for (std::size_t i = 0; i < kInt8Block; ++i) {
    to.values[i] = static_cast<std::int8_t>(rounded[i]);
    sums[i / 16] += rounded[i];
  }
  to.scale = inverse == 0 ? 0.0F : 1.0F / inverse;
  to.half_sums = {to.scale * static_cast<float>(sums[0]), to.scale * static_cast<float>(sums[1])};
  to.sum = to.scale * static_cast<float>(sums[0] + sums[1]);
}

}  // namespace

void quantise_row(const float* x, std::int64_t blocks, Int8Block* to) {
  for (std::int64_t i = 0; i < blocks; ++i) quantise_block(x + i * kInt8Block, to[i]);
}

}  // namespace headroom::measured::blocks
