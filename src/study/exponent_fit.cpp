#include "exponent_fit.h"

#include <array>
#include <cmath>

#include "headroom/complexity.h"

namespace headroom {

double student_t_975(std::size_t degrees_of_freedom) {
  constexpr std::array kTable{12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                              2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees_of_freedom >= 1 && degrees_of_freedom <= kTable.size()) {
    return kTable[degrees_of_freedom - 1];
  }
  constexpr double z = 1.9599640;  // of the normal distribution
  const auto n = static_cast<double>(degrees_of_freedom);
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<ExponentFit> fit_exponent(std::span<const LengthValue> values) {
  const auto count = static_cast<double>(values.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const LengthValue& one : values) {
    mean_x += std::log(one.length) / count;
    mean_y += std::log(one.value) / count;
  }
  double xx = 0;
  double xy = 0;
  for (const LengthValue& one : values) {
    const double x = std::log(one.length) - mean_x;
    xx += x * x;
    xy += x * (std::log(one.value) - mean_y);
  }
  if (values.size() < 2 || xx == 0) return std::nullopt;
  ExponentFit fit{xy / xx, std::nullopt, values.size()};
  if (values.size() == 2) return fit;
  double residuals = 0;
  for (const LengthValue& one : values) {
    const double line = mean_y + fit.exponent * (std::log(one.length) - mean_x);
    const double off = std::log(one.value) - line;
    residuals += off * off;
  }
  const double error = std::sqrt(residuals / (count - 2) / xx);
  fit.half_width_95 = student_t_975(values.size() - 2) * error;
  return fit;
}

std::optional<double> interpolated_crossing(std::span<const LengthValue> a,
                                            std::span<const LengthValue> b) {
  if (a.size() != b.size()) return std::nullopt;
  std::optional<double> crossing;
  double before = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].length != b[i].length) return std::nullopt;
    const double ratio = std::log(a[i].value / b[i].value);
    if (i > 0 && (before > 0) != (ratio > 0)) {
      const double left = std::log(a[i - 1].length);
      const double share = before / (before - ratio);
      crossing = std::exp(left + share * (std::log(a[i].length) - left));
    }
    before = ratio;
  }
  return crossing;
}

}  // namespace headroom
