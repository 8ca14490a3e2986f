// Runs that end as soon as the targets are missed against whole runs.
#include <doctest/doctest.h>

#include <random>

#include "random_questions.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// A target near a run's latency, on both sides of it, or exactly that latency; empty at times.
std::optional<double> target_near(std::mt19937& random, double latency_s) {
  const std::int64_t way = between(random, 0, 3);
  if (way == 0) return std::nullopt;
  if (way == 1) return latency_s;
  return latency_s * static_cast<double>(between(random, 90, 115)) / 100;
}

LatencyTargets targets_near(std::mt19937& random, const ServeFigures& figures, double percentile) {
  LatencyTargets targets;
  targets.percentile = percentile;
  targets.ttft_s = target_near(random, figures.ttft.at_target);
  if (figures.tpot) targets.tpot_s = target_near(random, figures.tpot->at_target);
  targets.end_to_end_s = target_near(random, figures.end_to_end.at_target);
  return targets;
}

}  // namespace

TEST_CASE("a run ends before its last request exactly if its figures would miss the targets") {
  constexpr double kPercentiles[] = {50, 90, 97.5, 99, 100};
  int met = 0;
  int missed = 0;
  const auto check = [&](std::mt19937& random, const ServeTraffic& traffic, auto& simulation) {
    const double percentile = kPercentiles[between(random, 0, 4)];
    const ServeFigures whole = simulation.run(traffic, percentile);
    const LatencyTargets targets = targets_near(random, whole, percentile);
    const auto kept = simulation.run_if_met(traffic, targets);
    CHECK(kept.has_value() == verdict_of(whole, targets).met());
    if (kept) CHECK(kept->end_to_end.mean == whole.end_to_end.mean);
    (kept ? met : missed) += 1;
  };
  for_random_simulations(23, check);
  MESSAGE(met << " met, " << missed << " missed");
  CHECK(met > 20);
  CHECK(missed > 20);
}
