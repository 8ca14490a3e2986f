// Conversions between float32 and bfloat16, the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace headroom::measured {

/// Rounds a finite number to the nearest bfloat16, ties to even; the result is a float32.
[[nodiscard]] inline float round_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

/// Bits of the bfloat16 that a float32 holds; its lower half is dropped.
[[nodiscard]] inline std::uint16_t bfloat16_bits(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

[[nodiscard]] inline float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

}  // namespace headroom::measured
