// Numbers in words.
#include <doctest/doctest.h>

#include <string_view>

#include "number_text.h"

using namespace headroom::detail;

TEST_CASE("a number at the start of a word is taken, and the rest of the word stays") {
  std::string_view amount = "1.5e9B";
  CHECK(take_decimal(amount) == 1.5e9);
  CHECK(amount == "B");
  std::string_view no_exponent = "15em";
  CHECK(take_decimal(no_exponent) == 15);
  CHECK(no_exponent == "em");
  std::string_view half = ".5";
  CHECK(take_decimal(half) == 0.5);
  std::string_view count = "-8K";
  CHECK(take_integer(count) == -8);
  CHECK(count == "K");
}

TEST_CASE("a word without a number, or with one that has no value, is left as it is") {
  for (const std::string_view word : {"", "K", "+1", " 1", "-", ".", "e5", "1e999", "inf", "nan"}) {
    CAPTURE(word);
    std::string_view text = word;
    CHECK_FALSE(take_decimal(text).has_value());
    CHECK(text == word);
  }
  for (const std::string_view word : {"", "K", "9223372036854775808"}) {
    CAPTURE(word);
    std::string_view text = word;
    CHECK_FALSE(take_integer(text).has_value());
    CHECK(text == word);
  }
}

TEST_CASE("a whole word is a number, or none") {
  CHECK(integer_of("9223372036854775807") == 9223372036854775807);
  CHECK_FALSE(integer_of("8K").has_value());
  CHECK_FALSE(integer_of("").has_value());
  CHECK(decimal_of("0.25") == 0.25);
  CHECK_FALSE(decimal_of("0.25%").has_value());
  CHECK_FALSE(decimal_of("").has_value());
}
