// The drift of runs between readings of the machine's speed.
#include <doctest/doctest.h>

#include <array>

#include "drift_watch.h"

namespace headroom::measured {
namespace {

std::vector<double> compute_drifts(std::initializer_list<double> readings) {
  std::vector<Drift> all;
  for (const double reading : readings) all.push_back({reading, 1});
  const std::vector<std::size_t> runs(all.size(), 1);
  std::vector<double> drifts;
  for (const Drift& drift : drift_of_runs(all, runs)) {
    CHECK(drift.memory == 1);
    drifts.push_back(drift.compute);
  }
  return drifts;
}

}  // namespace

TEST_CASE("the drift of a run is the mean of the readings beside it") {
  const std::vector<double> drifts = compute_drifts({1, 1.0625, 1.125});
  CHECK(drifts == std::vector<double>{1.03125, 1.03125, 1.09375});
}

TEST_CASE("a reading beside a burst of other work changes the drift of no run") {
  for (const std::size_t disturbed : {0U, 1U, 2U, 3U}) {
    std::array<Drift, 4> readings{Drift{1, 1}, Drift{1, 1}, Drift{1, 1}, Drift{1, 1}};
    readings.at(disturbed) = {1.75, 1.5};
    const std::array<std::size_t, 4> runs{1, 2, 1, 1};
    const std::vector<Drift> drifts = drift_of_runs(readings, runs);
    CHECK(drifts.size() == 5);
    for (const Drift& drift : drifts) {
      CHECK(drift.compute == 1);
      CHECK(drift.memory == 1);
    }
  }
}

TEST_CASE("a machine that is slow before and after a run was slow during it") {
  CHECK(compute_drifts({1, 1.5, 1.5}) == std::vector<double>{1, 1, 1.5});
  CHECK(compute_drifts({1.5}) == std::vector<double>{1.5});
}

}  // namespace headroom::measured
