// Axes of pictures: values to pixels, and round values to label. Internal to src/report.
#pragma once

#include <string>
#include <vector>

#include "picture.h"

namespace headroom::detail {

/// "0.5", "−1200", "2·10⁹"
[[nodiscard]] std::string tick_text(double value);

/// The range of an axis and the pixels that it maps to.
class AxisMap {
 public:
  /// Has `low`, `high`, and zero if it is linear, with margins.
  AxisMap(AxisScale scale, double low, double high, double from, double to);

  [[nodiscard]] double pixel(double value) const;
  /// Multiples of 1, 2 or 5 times a power of ten, or decades of a long logarithmic axis.
  [[nodiscard]] std::vector<double> ticks() const;

 private:
  [[nodiscard]] std::vector<double> linear_ticks() const;
  [[nodiscard]] std::vector<double> logarithmic_ticks() const;

  AxisScale scale_;
  double from_;
  double to_;
  double low_ = 0;
  double high_ = 1;
};

}  // namespace headroom::detail
