// Decode steps that are computed together against the same simulation step by step.
#include <doctest/doctest.h>

#include "random_questions.h"

using namespace headroom;
using namespace headroom::test;

namespace {

void check_equal(const LatencySummary& one, const LatencySummary& other) {
  const auto equal = [](double value) { return doctest::Approx(value).epsilon(1e-9); };
  CHECK(one.mean == equal(other.mean));
  CHECK(one.p50 == equal(other.p50));
  CHECK(one.p90 == equal(other.p90));
  CHECK(one.p99 == equal(other.p99));
}

void check_equal(const ServeFigures& one, const ServeFigures& other) {
  const auto equal = [](double value) { return doctest::Approx(value).epsilon(1e-9); };
  CHECK(one.steps == other.steps);
  CHECK(one.preemptions == other.preemptions);
  CHECK(one.load.peak_running == other.load.peak_running);
  CHECK(one.load.peak_waiting == other.load.peak_waiting);
  CHECK(one.duration_s == equal(other.duration_s));
  CHECK(one.load.busy == equal(other.load.busy));
  CHECK(one.compute_share == equal(other.compute_share));
  CHECK(one.load.mean_running == equal(other.load.mean_running));
  CHECK(one.load.mean_waiting == equal(other.load.mean_waiting));
  CHECK(one.load.mean_cache == equal(other.load.mean_cache));
  CHECK(one.load.peak_cache == equal(other.load.peak_cache));
  CHECK(one.tokens_per_step == equal(other.tokens_per_step));
  CHECK(one.mean_transfer_s == equal(other.mean_transfer_s));
  check_equal(one.ttft, other.ttft);
  check_equal(one.end_to_end, other.end_to_end);
  REQUIRE(one.tpot.has_value() == other.tpot.has_value());
  if (one.tpot) check_equal(*one.tpot, *other.tpot);
}

}  // namespace

TEST_CASE("decode steps together give what the simulation gives step by step") {
  int preempting = 0;
  int compared = 0;
  for_random_simulations(22, [&](auto&, const ServeTraffic& traffic, auto& simulation) {
    const ServeFigures together = simulation.run(traffic, 99);
    simulation.set_stepping(detail::Stepping::one_by_one);
    check_equal(together, simulation.run(traffic, 99));
    preempting += together.preemptions > 0 ? 1 : 0;
    ++compared;
  });
  MESSAGE(compared << " cases, " << preempting << " with preemption");
  CHECK(compared > 75);
  CHECK(preempting > 10);
}
