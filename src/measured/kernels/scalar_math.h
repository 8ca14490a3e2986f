// Activations of single values, for kernels that handle a number a head or a row.
#pragma once

#include <cmath>

namespace headroom::measured {

[[nodiscard]] inline float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

/// ln(1 + e^x), which is x itself above torch.nn.functional.softplus's threshold.
[[nodiscard]] inline float softplus(float x) {
  constexpr float kThreshold = 20.0F;
  return x > kThreshold ? x : std::log1p(std::exp(x));
}

}  // namespace headroom::measured
