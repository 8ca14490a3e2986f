// Fits of measured times. Internal to src/study.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "headroom/complexity.h"

namespace headroom {

/// Fits the exponent, with a confidence interval by Student's t with n − 2 degrees of freedom for n
/// points. Empty for fewer than two distinct lengths.
[[nodiscard]] std::optional<ExponentFit> fit_exponent(std::span<const LengthValue> values);

/// The 97.5 % quantile of Student's t. Source: Abramowitz & Stegun 1964, table 26.10, and beyond 10
/// degrees of freedom the expansion 26.7.5.
[[nodiscard]] double student_t_975(std::size_t degrees_of_freedom);

/// The last crossing of two curves, interpolated linearly between the logarithms of neighbouring
/// points. Empty without a crossing, or unless both curves have the same ascending lengths.
[[nodiscard]] std::optional<double> interpolated_crossing(std::span<const LengthValue> a,
                                                          std::span<const LengthValue> b);

}  // namespace headroom
