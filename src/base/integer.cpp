#include "headroom/integer.h"

#include <fmt/format.h>

#include "headroom/error.h"

namespace headroom {
namespace {

[[noreturn]] void throw_overflow() {
  throw Error(ErrorCode::overflow,
              "a figure is larger than 2^127 - 1 and cannot be counted exactly", {},
              "use smaller sizes, batch or sequence length");
}

}  // namespace

Integer checked_add(Integer a, Integer b) {
  Integer sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_overflow();
  return sum;
}

Integer checked_multiply(Integer a, Integer b) {
  Integer product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw_overflow();
  return product;
}

Integer checked_power(Integer base, unsigned exponent) {
  Integer result = 1;
  for (; exponent > 0; --exponent) result = checked_multiply(result, base);
  return result;
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
