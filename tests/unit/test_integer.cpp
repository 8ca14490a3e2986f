#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "headroom/error.h"
#include "headroom/expr.h"
#include "support/data.h"

using namespace headroom;

namespace {
const Integer kLargest = ~(Integer{1} << 127);
}

TEST_CASE("sums and products up to 2^127 - 1 are exact") {
  CHECK(to_string(kLargest) == "170141183460469231731687303715884105727");
  CHECK(checked_add(kLargest - 1, 1) == kLargest);
  CHECK(checked_multiply(Integer{1} << 63, Integer{1} << 63) == Integer{1} << 126);
  CHECK(checked_power(10, 38) == checked_multiply(checked_power(10, 19), checked_power(10, 19)));
}

TEST_CASE("a figure beyond 2^127 - 1 is an overflow error, never a wrap") {
  CHECK_THROWS_AS((void)checked_add(kLargest, 1), Error);
  CHECK_THROWS_AS((void)checked_multiply(kLargest, 2), Error);
  CHECK_THROWS_AS((void)checked_power(10, 39), Error);
  try {
    (void)checked_multiply(kLargest, 2);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::overflow);
    CHECK(exit_status(error.code()) == 2);
  }
}

TEST_CASE("a size beyond 64 bits is an overflow error, never a wrap") {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(checked_int64(kMost) == kMost);
  CHECK(checked_int64(kLeast) == kLeast);
  CHECK_THROWS_AS((void)checked_int64(Integer{kMost} + 1), Error);
  CHECK_THROWS_AS((void)checked_int64(Integer{kLeast} - 1), Error);
  const Expr size = Expr(kMost) * Symbol::hidden_size;
  Bindings sizes;
  sizes.set(Symbol::hidden_size, 1);
  CHECK(size.evaluate_int64(sizes) == kMost);
  sizes.set(Symbol::hidden_size, 32);
  CHECK_THROWS_AS((void)size.evaluate_int64(sizes), Error);
}

TEST_CASE("a quotient is rounded up, in the type of the dividend") {
  CHECK(ceil_div(0, 4) == 0);
  CHECK(ceil_div(8, 4) == 2);
  CHECK(ceil_div(9, 4) == 3);
  CHECK(ceil_div(-9, 4) == -2);
  CHECK(ceil_div(std::size_t{9}, 4) == std::size_t{3});
  CHECK(ceil_div(kLargest, 2) == Integer{1} << 126);
  CHECK(ceil_div(std::numeric_limits<std::int64_t>::max(), 1) ==
        std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("a value is rounded up to a multiple of the divisor") {
  CHECK(round_up(0, 8) == 0);
  CHECK(round_up(8, 8) == 8);
  CHECK(round_up(9, 8) == 16);
  CHECK(round_up(-9, 8) == -8);
  CHECK(round_up(kLargest - 1, 2) == kLargest - 1);
}

TEST_CASE("a multiple beyond the type's range is an overflow error that names the range") {
  CHECK_THROWS_WITH((void)round_up(kLargest, 2),
                    "a figure is larger than 2^127 - 1 and cannot be counted exactly");
  CHECK_THROWS_WITH((void)round_up(std::numeric_limits<std::int64_t>::max(), 2),
                    "a figure is larger than 2^63 - 1 and cannot be counted exactly");
  CHECK_THROWS_WITH((void)round_up(std::numeric_limits<std::uint64_t>::max(), 2),
                    "a figure is larger than 2^64 - 1 and cannot be counted exactly");
}

TEST_CASE("a divisor that is not positive is an error, never a crash") {
  CHECK_THROWS_AS((void)ceil_div(4, 0), Error);
  CHECK_THROWS_AS((void)ceil_div(4, -2), Error);
  CHECK_THROWS_AS((void)round_up(Integer{4}, 0), Error);
  CHECK_THROWS_AS((void)round_up(std::size_t{4}, 0), Error);
}

TEST_CASE("the greatest common divisor is positive, whatever the signs") {
  CHECK(gcd(12, 18) == 6);
  CHECK(gcd(-12, 18) == 6);
  CHECK(gcd(12, -18) == 6);
  CHECK(gcd(0, -5) == 5);
  CHECK(gcd(7, 0) == 7);
  CHECK(gcd(0, 0) == 0);
  CHECK(gcd(checked_power(10, 38), checked_power(2, 100)) == checked_power(2, 38));
}

TEST_CASE("digits are grouped in threes, also after a minus sign") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(109482240) == "109,482,240");
  CHECK(with_separators(-123456) == "-123,456");
}
