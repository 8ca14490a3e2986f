// Counts in words.
#include <doctest/doctest.h>

#include "with_noun.h"

using namespace headroom::detail;

TEST_CASE("a noun has an s unless there is one of it") {
  CHECK(with_noun(0, "run") == "0 runs");
  CHECK(with_noun(1, "run") == "1 run");
  CHECK(with_noun(2000, "LoRA adapter") == "2000 LoRA adapters");
  CHECK(with_noun_grouped(2000, "row") == "2,000 rows");
  CHECK(with_noun_grouped(1, "row") == "1 row");
}
