// Seconds of operators, and their bounds.
#pragma once

#include <algorithm>

namespace headroom {

/// Seconds, those of them in operators that arithmetic bounds, and the least that the rates of the
/// datasheet allow.
struct BoundSeconds {
  double all = 0;
  double compute_bound = 0;
  double roofline = 0;

  BoundSeconds& operator+=(const BoundSeconds& other) {
    all += other.all;
    compute_bound += other.compute_bound;
    roofline += other.roofline;
    return *this;
  }
  BoundSeconds& operator-=(const BoundSeconds& other) {
    all -= other.all;
    compute_bound -= other.compute_bound;
    roofline -= other.roofline;
    return *this;
  }
  friend BoundSeconds operator+(BoundSeconds one, const BoundSeconds& other) {
    return one += other;
  }
  friend BoundSeconds operator-(BoundSeconds one, const BoundSeconds& other) {
    return one -= other;
  }
  friend BoundSeconds operator*(double factor, const BoundSeconds& one) {
    return {factor * one.all, factor * one.compute_bound, factor * one.roofline};
  }

  /// `factor`, or as close to it as the roofline allows a run to be faster.
  [[nodiscard]] double possible(double factor) const {
    if (factor >= 1 || all <= 0) return factor;
    return std::clamp(roofline / all, factor, 1.0);
  }
};

}  // namespace headroom
