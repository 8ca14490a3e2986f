// Bits of float16, for random weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headroom::measured {

/// Nearest float16 of a number in its finite range. Source: IEEE 754-2019, section 3.6: 10 bits of
/// fraction, exponents from -14 on.
[[nodiscard]] inline std::uint16_t float16_bits(float value) {
  constexpr int kLeastExponent = -14;
  constexpr int kMantissaBits = 10;
  const float magnitude = std::abs(value);
  const int exponent =
      magnitude > 0 ? std::max(std::ilogb(magnitude), kLeastExponent) : kLeastExponent;
  const auto mantissa = std::lround(std::ldexp(magnitude, kMantissaBits - exponent));
  const long bits = ((exponent - kLeastExponent) << kMantissaBits) + mantissa;
  return static_cast<std::uint16_t>(bits | (value < 0 ? 0x8000 : 0));
}

}  // namespace headroom::measured
