// Values of golden tensors, and their comparison with a run's.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "safetensors.h"

namespace headroom::measured::testing {

inline std::vector<float> values_of(const checkpoint::StoredTensor& tensor) {
  std::size_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
  std::vector<float> values(count);
  checkpoint::copy_as_float32(tensor, values, tensor.name);
  return values;
}

/// Largest difference over its tolerance, 2e-5 + 2e-5 · the largest expected value; infinite if
/// lengths differ or a value is not finite. Compares the values that `is_relevant(index)` selects.
template <class IsRelevant>
double error_over_tolerance(const std::vector<float>& got, const std::vector<float>& expected,
                            const IsRelevant& is_relevant) {
  if (got.size() != expected.size()) return HUGE_VAL;
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!is_relevant(i)) continue;
    const auto wanted = static_cast<double>(expected[i]);
    largest = std::max(largest, std::abs(wanted));
    const double error = std::abs(static_cast<double>(got[i]) - wanted);
    if (!std::isfinite(error)) return HUGE_VAL;
    difference = std::max(difference, error);
  }
  return difference / (2e-5 + 2e-5 * largest);
}

inline double error_over_tolerance(const std::vector<float>& got,
                                   const std::vector<float>& expected) {
  return error_over_tolerance(got, expected, [](std::size_t /*index*/) { return true; });
}

}  // namespace headroom::measured::testing
