// Seconds, and their compute-bound part. Internal to src/plan and src/serve.
#pragma once

namespace headroom::detail {

/// Seconds, and those of them in operators that arithmetic bounds.
struct BoundSeconds {
  double all = 0;
  double compute_bound = 0;

  BoundSeconds& operator+=(const BoundSeconds& other) {
    all += other.all;
    compute_bound += other.compute_bound;
    return *this;
  }
  BoundSeconds& operator-=(const BoundSeconds& other) {
    all -= other.all;
    compute_bound -= other.compute_bound;
    return *this;
  }
  friend BoundSeconds operator+(BoundSeconds one, const BoundSeconds& other) {
    return one += other;
  }
  friend BoundSeconds operator-(BoundSeconds one, const BoundSeconds& other) {
    return one -= other;
  }
  friend BoundSeconds operator*(double factor, const BoundSeconds& one) {
    return {factor * one.all, factor * one.compute_bound};
  }
};

}  // namespace headroom::detail
