// The order in which a search tries numbers of devices: against predicates that hold for more
// devices only, and for some in between.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "device_counts.h"

using namespace headroom;
using detail::DeviceCounts;
using detail::fewest_that_works;

namespace {

constexpr std::int64_t kNode = 8;

FixedDegrees pipeline_of(std::int64_t stages) {
  FixedDegrees fixed;
  fixed.pipeline = stages;
  return fixed;
}

/// The answer of a search that at least `enough` devices satisfy.
std::int64_t fewest_from(std::int64_t enough, std::int64_t devices_per_node,
                         const FixedDegrees& fixed = {}) {
  const DeviceCounts counts(1, 1024, devices_per_node, fixed);
  return fewest_that_works(counts, [&](std::int64_t devices) { return devices >= enough; })
      .value_or(0);
}

/// The numbers that a search tries if none works, in order.
std::vector<std::int64_t> all_tried(const DeviceCounts& counts) {
  std::vector<std::int64_t> tried;
  CHECK(!fewest_that_works(counts, [&](std::int64_t devices) {
    tried.push_back(devices);
    return false;
  }));
  return tried;
}

/// The answer if only these numbers work.
std::int64_t fewest_of(const std::vector<std::int64_t>& working) {
  const DeviceCounts counts(1, 64, kNode, FixedDegrees{});
  return fewest_that_works(
             counts, [&](std::int64_t devices) { return std::ranges::count(working, devices) > 0; })
      .value_or(0);
}

}  // namespace

TEST_CASE("the fewest devices up to 64 are any number") {
  for (std::int64_t enough = 1; enough <= 64; ++enough) {
    CHECK(fewest_from(enough, kNode) == enough);
  }
}

TEST_CASE("more devices may work worse: the fewest are found below a number that fails") {
  CHECK(fewest_of({6, 16}) == 6);
  CHECK(fewest_of({5, 12, 64}) == 5);
  CHECK(fewest_of({7}) == 7);
  CHECK(fewest_of({33, 40}) == 33);
}

TEST_CASE("above 64 devices, whole nodes are taken") {
  CHECK(fewest_from(100, 8) == 104);
  CHECK(fewest_from(100, 16) == 112);
  // Nodes of less than 8, and of more than 64, come in multiples of 8 devices or more.
  CHECK(fewest_from(100, 1) == 104);
  CHECK(fewest_from(100, 4) == 104);
  CHECK(fewest_from(100, 6) == 108);
  CHECK(fewest_from(100, 72) == 104);
  CHECK(fewest_from(65, 256) == 72);
}

TEST_CASE("numbers of devices are multiples of the given degrees") {
  CHECK(fewest_from(4, kNode, pipeline_of(3)) == 6);
  CHECK(fewest_from(100, kNode, pipeline_of(3)) == 120);
  CHECK(fewest_from(70, kNode, pipeline_of(61)) == 122);
  CHECK(fewest_from(1, kNode, pipeline_of(2048)) == 0);
}

TEST_CASE("a search without an answer asks once for every number up to 64") {
  std::vector<std::int64_t> tried = all_tried({1, 100, kNode, FixedDegrees{}});
  std::ranges::sort(tried);
  REQUIRE(tried.size() == 65);
  for (std::size_t i = 0; i < 64; ++i) CHECK(tried[i] == static_cast<std::int64_t>(i) + 1);
  CHECK(tried.back() == 96);
}

TEST_CASE("a given number of devices is the only one tried") {
  CHECK(all_tried({13, 13, kNode, FixedDegrees{}}) == std::vector<std::int64_t>{13});
  CHECK(all_tried({100, 100, kNode, FixedDegrees{}}) == std::vector<std::int64_t>{100});
  CHECK(all_tried({13, 13, kNode, pipeline_of(2)}).empty());
}

TEST_CASE("the largest number allowed is tried, too") {
  const DeviceCounts counts(1, 6, kNode, FixedDegrees{});
  CHECK(counts.doubling() == std::vector<std::int64_t>{1, 2, 4, 6});
}
