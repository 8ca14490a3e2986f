#include <fmt/format.h>

#include <utility>

#include "headroom/error.h"
#include "headroom/expr.h"

namespace headroom {

namespace detail {

void throw_overflow(unsigned bits) {
  throw Error(ErrorCode::overflow,
              fmt::format("a figure is larger than 2^{} - 1 and cannot be counted exactly", bits),
              {}, "use smaller sizes, batch or sequence length");
}

void throw_divisor_not_positive() {
  throw Error(ErrorCode::internal, "division by a number that is not positive");
}

}  // namespace detail

namespace {

Integer magnitude(Integer value) { return value < 0 ? checked_multiply(value, -1) : value; }

}  // namespace

Integer checked_power(Integer base, unsigned exponent) {
  Integer result = 1;
  for (; exponent > 0; --exponent) result = checked_multiply(result, base);
  return result;
}

Integer gcd(Integer a, Integer b) {
  a = magnitude(a);
  b = magnitude(b);
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

std::string to_string(Integer value) { return fmt::format("{}", value); }

std::string with_separators(Integer value) {
  std::string digits = to_string(value);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace headroom
