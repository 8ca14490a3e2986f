// Exact 128-bit integers: every count in headroom is one, and overflow is an error, never a wrap.
#pragma once

#include <string>

namespace headroom {

/// A signed 128-bit integer. Counts reach 1e26 for real questions (training FLOPs); 2^127
/// is 1.7e38.
__extension__ using Integer = __int128;

/// a + b. Throws Error{overflow} when the sum passes the range of Integer.
[[nodiscard]] Integer checked_add(Integer a, Integer b);

/// a * b. Throws Error{overflow} when the product passes the range of Integer.
[[nodiscard]] Integer checked_multiply(Integer a, Integer b);

/// base to the power of `exponent`. Throws Error{overflow}.
[[nodiscard]] Integer checked_power(Integer base, unsigned exponent);

/// Decimal digits without separators: "-1234".
[[nodiscard]] std::string to_string(Integer value);

/// Decimal digits in groups of three: "109,482,240".
[[nodiscard]] std::string with_separators(Integer value);

}  // namespace headroom
