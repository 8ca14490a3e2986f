#include <doctest/doctest.h>

#include "headroom/error.h"
#include "headroom/integer.h"
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

TEST_CASE("digits are grouped in threes, also behind a sign") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(109482240) == "109,482,240");
  CHECK(with_separators(-123456) == "-123,456");
}
