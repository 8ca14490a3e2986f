// Decode steps that are computed together against the same simulation step by step.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <vector>

#include "arrivals.h"
#include "serve_questions.h"
#include "simulation.h"

using namespace headroom;
using namespace headroom::test;

namespace {

struct Case {
  ServeQuestion question;
  PlanChoice choice;
};

std::int64_t between(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<unsigned long>(most - least + 1));
}

/// Requests at random times with random lengths.
TraceArrivals random_trace(std::mt19937& random, double rate) {
  TraceArrivals trace;
  double now_s = 0;
  for (int i = 0; i < 80; ++i) {
    now_s += static_cast<double>(between(random, 0, 200)) / 100 / rate;
    trace.requests.push_back({now_s, between(random, 1, 3000), between(random, 1, 1200)});
  }
  return trace;
}

/// Models with caches of all tokens, of windows and of latent vectors; devices with much and with
/// little room; all ways of arriving and of admission; replicas of both kinds.
Case random_case(std::mt19937& random) {
  constexpr const char* kModels[] = {"llama-3-8b", "gemma-2-9b", "deepseek-v2-lite"};
  constexpr const char* kMachines[] = {"h100-80gb", "l4", "rtx-4090"};
  constexpr std::int64_t kBlocks[] = {8, 16, 32, 48};
  const double rate = static_cast<double>(between(random, 1, 40)) / 4;
  ServeTraffic traffic = poisson(rate, 80, between(random, 1, 2500), between(random, 1, 1500));
  traffic.seed = random();
  const std::int64_t way = between(random, 0, 2);
  if (way == 1) traffic.arrivals = UserArrivals{between(random, 1, 40)};
  if (way == 2) traffic.arrivals = random_trace(random, rate);
  Case one;
  const auto* const model = kModels[between(random, 0, 2)];
  one.question = question_for(model, kMachines[between(random, 0, 2)], traffic);
  one.question.plan.query.weights = WeightType::int4;
  constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
  one.question.plan.rates.memory_bytes = between(random, 7, 20) * kGiB;
  SchedulerLimits& limits = one.question.limits;
  limits.block_tokens = kBlocks[between(random, 0, 3)];
  limits.max_sequences = between(random, 1, 48);
  limits.batched_tokens = between(random, 16, 2048);
  limits.admission = between(random, 0, 1) == 0 ? Admission::prompt : Admission::request;
  if (between(random, 0, 2) == 0) limits.prefix_hit = 0.5;
  one.choice = degrees(1, between(random, 0, 4) == 0 ? 2 : 1, between(random, 1, 3));
  if (one.choice.parallel.data > 1 && between(random, 0, 1) == 0) limits.prefill_replicas = 1;
  return one;
}

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
  CHECK(one.peak_running == other.peak_running);
  CHECK(one.peak_waiting == other.peak_waiting);
  CHECK(one.duration_s == equal(other.duration_s));
  CHECK(one.busy == equal(other.busy));
  CHECK(one.compute_share == equal(other.compute_share));
  CHECK(one.mean_running == equal(other.mean_running));
  CHECK(one.mean_waiting == equal(other.mean_waiting));
  CHECK(one.mean_cache == equal(other.mean_cache));
  CHECK(one.peak_cache == equal(other.peak_cache));
  CHECK(one.tokens_per_step == equal(other.tokens_per_step));
  CHECK(one.mean_transfer_s == equal(other.mean_transfer_s));
  check_equal(one.ttft, other.ttft);
  check_equal(one.end_to_end, other.end_to_end);
  REQUIRE(one.tpot.has_value() == other.tpot.has_value());
  if (one.tpot) check_equal(*one.tpot, *other.tpot);
}

}  // namespace

TEST_CASE("decode steps together give what the simulation gives step by step") {
  std::mt19937 random(22);
  int preempting = 0;
  int compared = 0;
  for (int i = 0; i < 200; ++i) {
    const Case one = random_case(random);
    Planner planner(one.question.plan.model.spec, detail::query_of(one.question),
                    one.question.plan.rates);
    detail::Simulation simulation(planner, one.question, one.choice);
    if (!simulation.holds(detail::requests_of(one.question.traffic))) continue;
    CAPTURE(i);
    const ServeFigures together = simulation.run(one.question.traffic, 99);
    simulation.set_stepping(detail::Stepping::one_by_one);
    check_equal(together, simulation.run(one.question.traffic, 99));
    preempting += together.preemptions > 0 ? 1 : 0;
    ++compared;
  }
  MESSAGE(compared << " cases, " << preempting << " with preemption");
  CHECK(compared > 75);
  CHECK(preempting > 10);
}
