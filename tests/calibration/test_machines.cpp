// Machines that `fit` and `serve` compare, by --machines.
#include <doctest/doctest.h>

#include "device_choice.h"

using namespace headroom;

TEST_CASE("all names the whole catalogue, as no name does") {
  const std::size_t all = cli::machines_of({}).size();
  CHECK(all > 80);
  CHECK(cli::machines_of({"all"}).size() == all);
  CHECK(cli::machines_of({"h100", "h100-80gb"}).size() == 3);
}
