// Random data and comparisons for the kernel tests.
#pragma once

#include <omp.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace headroom::measured::testing {

/// `count` uniform numbers in ±`range`; the same seed gives the same numbers.
inline std::vector<float> random_floats(std::int64_t count, unsigned seed, float range = 1.0F) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-range, range);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

/// Largest |actual - expected| / (scale + |expected|); infinite if lengths differ or a value is not
/// finite.
inline double largest_error(const std::vector<float>& actual, const std::vector<double>& expected,
                            double scale = 1.0) {
  if (actual.size() != expected.size()) return HUGE_VAL;
  double largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    const double error = difference / (scale + std::abs(expected[i]));
    if (!std::isfinite(error)) return HUGE_VAL;
    largest = std::fmax(largest, error);
  }
  return largest;
}

inline double at(const std::vector<float>& values, std::int64_t index) {
  return static_cast<double>(values[static_cast<std::size_t>(index)]);
}

inline std::vector<float> zeros(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), 0.0F);
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Sets the number of threads for a scope.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace headroom::measured::testing
