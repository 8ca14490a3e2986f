// Slopes of attention with linear biases (arXiv 2108.12409).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// One slope a head, rounded to bfloat16 where `alibi.order` says so.
[[nodiscard]] std::vector<float> alibi_slopes(const AlibiSpec& alibi, std::int64_t heads);

/// The nearest bfloat16 value of a finite number, ties to even: a float32 with 16 bits less.
[[nodiscard]] inline float rounded_to_bfloat16(float value) {
  constexpr std::uint32_t kDropped = 16;
  constexpr std::uint32_t kBelowHalf = 0x7FFF;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t odd = bits >> kDropped & 1U;
  return std::bit_cast<float>((bits + kBelowHalf + odd) >> kDropped << kDropped);
}

}  // namespace headroom::measured
