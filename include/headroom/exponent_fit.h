// The exponent of growth that measurements show: t ~ N^p, by least squares of log t against log N.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace headroom {

/// A cost or time at one length; both above zero.
struct LengthValue {
  double length = 0;
  double value = 0;
};

/// A straight line through logarithms.
struct ExponentFit {
  double exponent = 0;                  ///< its slope
  std::optional<double> half_width_95;  ///< of the 95 % confidence interval; none of two points
  std::size_t points = 0;
};

/// The slope, and how far it may be off by Student's t with two degrees of freedom less than there
/// are points. Empty for fewer than two different lengths.
[[nodiscard]] std::optional<ExponentFit> fit_exponent(std::span<const LengthValue> values);

/// The quantile of Student's t that leaves 2.5 % above it. Abramowitz & Stegun 1964, table 26.10,
/// and beyond 10 degrees of freedom the expansion 26.7.5.
[[nodiscard]] double student_t_975(std::size_t degrees_of_freedom);

/// Where the quotient of two curves passes 1, by a straight line between the logarithms of
/// neighbouring points: the last such place. Empty where it passes nowhere, or where the curves do
/// not have the same lengths, in ascending order.
[[nodiscard]] std::optional<double> interpolated_crossing(std::span<const LengthValue> a,
                                                          std::span<const LengthValue> b);

}  // namespace headroom
