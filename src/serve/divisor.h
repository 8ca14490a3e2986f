// Division by a number that is nearly always a power of two. Internal to src/serve.
#pragma once

#include <bit>
#include <cstdint>

namespace headroom::detail {

/// A number above 0 that counts are divided by: by a shift if it is a power of two.
class Divisor {
 public:
  explicit Divisor(std::int64_t value)
      : value_(value),
        shift_(std::has_single_bit(static_cast<std::uint64_t>(value))
                   ? std::countr_zero(static_cast<std::uint64_t>(value))
                   : -1) {}

  [[nodiscard]] std::int64_t value() const { return value_; }
  /// Rounded down, of a count of at least 0.
  [[nodiscard]] std::int64_t quotient(std::int64_t count) const {
    return shift_ >= 0 ? count >> shift_ : count / value_;
  }
  /// Rounded up.
  [[nodiscard]] std::int64_t quotient_up(std::int64_t count) const {
    return quotient(count + value_ - 1);
  }

 private:
  std::int64_t value_;
  int shift_;
};

}  // namespace headroom::detail
