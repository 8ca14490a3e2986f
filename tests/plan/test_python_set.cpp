// Order of a Python set of pairs: lists that CPython 3.11 printed.
#include <doctest/doctest.h>

#include "python_set.h"

using headroom::detail::in_set_order;
using headroom::detail::IntegerPair;

namespace {

/// The pairs of either side and the next number.
std::vector<IntegerPair> products(std::int64_t a, std::int64_t b) {
  return {{a, b}, {a, b + 1}, {a + 1, b}, {a + 1, b + 1}};
}

}  // namespace

TEST_CASE("pairs stand in the order of a Python set") {
  using Pairs = std::vector<IntegerPair>;
  CHECK(in_set_order(products(17, 17)) == Pairs{{17, 17}, {17, 18}, {18, 17}, {18, 18}});
  CHECK(in_set_order(products(27, 27)) == Pairs{{28, 28}, {27, 27}, {27, 28}, {28, 27}});
  CHECK(in_set_order(products(36, 36)) == Pairs{{37, 37}, {36, 36}, {36, 37}, {37, 36}});
  CHECK(in_set_order(products(0, 5)) == Pairs{{1, 6}, {1, 5}, {0, 5}, {0, 6}});
  CHECK(in_set_order({{4, 4}, {4, 4}}) == Pairs{{4, 4}});
}
