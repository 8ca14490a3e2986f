#include "cumulative_norm.h"

#include <cmath>

namespace headroom::measured {

void cumulative_norm(const NormArguments& norm, std::int64_t channels, const float* x, float* out) {
  double sum = 0;
  double squares = 0;
  for (std::int64_t row = 0; row < norm.rows; ++row) {
    const float* const from = x + row * norm.width;
    float* const to = out + row * norm.width;
    const auto values = static_cast<double>((row + 1) * norm.width);
    for (std::int64_t i = 0; i < norm.width; ++i) sum += static_cast<double>(from[i]);
    const double mean = sum / values;
    for (std::int64_t i = 0; i < norm.width; ++i) {
      const double difference = static_cast<double>(from[i]) - mean;
      squares += difference * difference;
    }
    const double factor = 1 / std::sqrt(squares / values + static_cast<double>(norm.eps));
    for (std::int64_t i = 0; i < norm.width; ++i) {
      const double normed = (static_cast<double>(from[i]) - mean) * factor;
      to[i] = static_cast<float>(normed) * norm.weight[i % channels];
    }
  }
}

}  // namespace headroom::measured
