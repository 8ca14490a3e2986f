// A scalar that counts its operations, for definitions that hold the counted FLOPs of kernels.
#pragma once

#include <cstdint>

namespace headroom::measured::testing {

/// A double that counts its multiplications and additions, each of them 1 FLOP. Reference loops
/// over it say how many FLOPs a kernel's definition has, without a formula. One thread.
class CountingScalar {
 public:
  CountingScalar(double value = 0) : value_(value) {}

  friend CountingScalar operator*(CountingScalar a, CountingScalar b) {
    ++operations_;
    return {a.value_ * b.value_};
  }
  CountingScalar& operator+=(CountingScalar other) {
    ++operations_;
    value_ += other.value_;
    return *this;
  }
  [[nodiscard]] double value() const { return value_; }
  /// Scales the value by what is no part of a matrix product, such as a decay: counts nothing.
  void scale(double factor) { value_ *= factor; }

  /// Operations since the last call.
  [[nodiscard]] static std::int64_t take_operations() {
    const std::int64_t operations = operations_;
    operations_ = 0;
    return operations;
  }

 private:
  inline static std::int64_t operations_ = 0;
  double value_;
};

}  // namespace headroom::measured::testing
