// Rows of activations quantised to int8, a scale for every 32 values.
#pragma once

#include <array>
#include <cstdint>

namespace headroom::measured::blocks {

inline constexpr std::int64_t kInt8Block = 32;

/// 32 activations: x ≈ scale·value, off by at most scale/2 = max|x|/254 each. The layout of ggml's
/// Q8_1, with a float32 scale and the sums of both halves, which the minima of weights multiply.
struct Int8Block {
  float scale = 0;
  float sum = 0;                     ///< scale·Σ value
  std::array<float, 2> half_sums{};  ///< of values 0 to 15, and 16 to 31
  std::array<std::int8_t, 32> values{};
};

/// Quantises x, `blocks`·32 values, rounding to nearest. A block with a value that is not finite
/// has the scale NaN.
void quantise_row(const float* x, std::int64_t blocks, Int8Block* to);

}  // namespace headroom::measured::blocks
