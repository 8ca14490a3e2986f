// Exact 128-bit integers. Every count in headroom is one; overflow is an error, never a wrap.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

namespace headroom {

/// A signed 128-bit integer. Training FLOPs reach 1e26; 2^127 is 1.7e38.
__extension__ using Integer = __int128;

namespace detail {

/// Built-in integers and Integer, which std::integral leaves out without GNU extensions.
template <class Int>
concept AnyInteger = std::integral<Int> || std::same_as<Int, Integer>;

/// Integer ranges up to 2^127 - 1.
inline constexpr unsigned kIntegerBits = 127;

/// Throws Error{overflow}: the largest value is 2^`bits` - 1.
[[noreturn]] void throw_overflow(unsigned bits);
/// Throws Error{internal}.
[[noreturn]] void throw_divisor_not_positive();

}  // namespace detail

/// a + b. Throws Error{overflow} when the sum leaves the range of Integer.
[[nodiscard]] constexpr Integer checked_add(Integer a, Integer b) {
  Integer sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) detail::throw_overflow(detail::kIntegerBits);
  return sum;
}

/// a * b. Throws Error{overflow} when the product leaves the range of Integer.
[[nodiscard]] constexpr Integer checked_multiply(Integer a, Integer b) {
  Integer product = 0;
  if (__builtin_mul_overflow(a, b, &product)) detail::throw_overflow(detail::kIntegerBits);
  return product;
}

/// base to the power of `exponent`. Throws Error{overflow}.
[[nodiscard]] Integer checked_power(Integer base, unsigned exponent);

/// ⌈dividend / divisor⌉, of the dividend's type. Throws Error{internal} unless divisor > 0.
template <detail::AnyInteger Int>
[[nodiscard]] constexpr Int ceil_div(Int dividend, std::type_identity_t<Int> divisor) {
  if (divisor <= 0) detail::throw_divisor_not_positive();
  const Int quotient = dividend / divisor;
  return dividend % divisor > 0 ? quotient + 1 : quotient;
}

/// The least multiple of `divisor` that is not below `value`. Throws Error{internal} unless
/// divisor > 0, and Error{overflow} when that multiple leaves the range of the type.
template <detail::AnyInteger Int>
[[nodiscard]] constexpr Int round_up(Int value, std::type_identity_t<Int> divisor) {
  Int multiple = 0;
  if (__builtin_mul_overflow(ceil_div(value, divisor), divisor, &multiple)) {
    constexpr bool is_signed = static_cast<Int>(-1) < 0;
    detail::throw_overflow(8 * sizeof(Int) - (is_signed ? 1 : 0));
  }
  return multiple;
}

/// Greatest common divisor of |a| and |b|; gcd(0, 0) = 0. Throws Error{overflow} for -2^127.
[[nodiscard]] Integer gcd(Integer a, Integer b);

/// Decimal digits without separators: "-1234".
[[nodiscard]] std::string to_string(Integer value);

/// Decimal digits in groups of three: "109,482,240".
[[nodiscard]] std::string with_separators(Integer value);

}  // namespace headroom
