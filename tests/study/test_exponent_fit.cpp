// Fitted exponents of data with known exponents.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "exponent_fit.h"
#include "headroom/complexity.h"

namespace headroom::test {

TEST_CASE("a pure power law gives its exponent with an interval of zero width") {
  for (const double exponent : {0.5, 1.0, 2.0, 2.5}) {
    std::vector<LengthValue> values;
    for (double n = 64; n <= 16384; n *= 2) values.push_back({n, 3e-9 * std::pow(n, exponent)});
    const auto fit = fit_exponent(values);
    CHECK(fit->exponent == doctest::Approx(exponent));
    CHECK(*fit->half_width_95 == doctest::Approx(0).epsilon(1e-9));
    CHECK(fit->points == 9);
  }
}

TEST_CASE("the interval equals that of a textbook regression") {
  // log2 N = 0 … 4, log2 t = 1, 3, 4, 8, 9: slope 2.1, residuals −0.2, −0.3, … by hand:
  // Σ(x − x̄)² = 10, Σ(x − x̄)(y − ȳ) = 21, Σ residuals² = 46 − 44.1 = 1.9.
  const std::vector<LengthValue> values{{1, 2}, {2, 8}, {4, 16}, {8, 256}, {16, 512}};
  const auto fit = fit_exponent(values);
  CHECK(fit->exponent == doctest::Approx(2.1));
  CHECK(*fit->half_width_95 == doctest::Approx(3.1824 * std::sqrt(1.9 / 3 / 10)).epsilon(1e-4));
}

TEST_CASE("the interval contains the true exponent in 95 of 100 samples") {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.1);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<LengthValue> values;
    for (double n = 64; n <= 4096; n *= 2) {
      values.push_back({n, std::pow(n, 1.7) * std::exp(noise(random))});
    }
    const auto fit = fit_exponent(values);
    held += std::abs(fit->exponent - 1.7) <= *fit->half_width_95 ? 1 : 0;
  }
  CHECK(held > 0.93 * kTrials);
  CHECK(held < 0.97 * kTrials);
}

TEST_CASE("too few points have no exponent, or no interval") {
  CHECK_FALSE(fit_exponent({}).has_value());
  const std::vector<LengthValue> same{{8, 1}, {8, 2}};
  CHECK_FALSE(fit_exponent(same).has_value());
  const std::vector<LengthValue> two{{8, 1}, {16, 4}};
  CHECK(fit_exponent(two)->exponent == doctest::Approx(2));
  CHECK_FALSE(fit_exponent(two)->half_width_95.has_value());
}

TEST_CASE("quantiles of Student's t equal published tables") {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
  CHECK(student_t_975(1) == doctest::Approx(12.706).epsilon(1e-4));
  CHECK(student_t_975(10) == doctest::Approx(2.228).epsilon(1e-4));
  CHECK(student_t_975(11) == doctest::Approx(2.201).epsilon(1e-4));
  CHECK(student_t_975(30) == doctest::Approx(2.042).epsilon(2e-4));
  CHECK(student_t_975(100) == doctest::Approx(1.984).epsilon(2e-4));
}

TEST_CASE("two power laws cross where they are equal, between points or at one") {
  std::vector<LengthValue> square;
  std::vector<LengthValue> line;
  for (double n = 16; n <= 4096; n *= 2) {
    square.push_back({n, n * n});
    line.push_back({n, 300 * n});
  }
  CHECK(*interpolated_crossing(square, line) == doctest::Approx(300));
  CHECK(*interpolated_crossing(line, square) == doctest::Approx(300));
  CHECK_FALSE(interpolated_crossing(square, square).has_value());
  line.pop_back();
  CHECK_FALSE(interpolated_crossing(square, line).has_value());
}

}  // namespace headroom::test
