// Random questions for the simulation.
#pragma once

#include <doctest/doctest.h>

#include <random>

#include "arrivals.h"
#include "serve_questions.h"
#include "simulation.h"

namespace headroom::test {

/// A question, and a plan that is legal for it.
struct RandomCase {
  ServeQuestion question;
  PlanChoice choice;
};

inline std::int64_t between(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<unsigned long>(most - least + 1));
}

/// Requests at random times with random lengths.
inline TraceArrivals random_trace(std::mt19937& random, double rate) {
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
inline RandomCase random_case(std::mt19937& random) {
  constexpr const char* kModels[] = {"llama-3-8b", "gemma-2-9b", "deepseek-v2-lite"};
  constexpr const char* kMachines[] = {"h100-80gb", "l4", "rtx-4090"};
  constexpr std::int64_t kBlocks[] = {8, 16, 32, 48};
  const double rate = static_cast<double>(between(random, 1, 40)) / 4;
  ServeTraffic traffic = poisson(rate, 80, between(random, 1, 2500), between(random, 1, 1500));
  traffic.seed = random();
  const std::int64_t way = between(random, 0, 2);
  if (way == 1) traffic.arrivals = UserArrivals{between(random, 1, 40)};
  if (way == 2) traffic.arrivals = random_trace(random, rate);
  RandomCase one;
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

/// Calls visit(random, traffic, simulation) for those of 200 random cases whose cache has room.
template <class Visit>
void for_random_simulations(unsigned seed, const Visit& visit) {
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    const RandomCase one = random_case(random);
    const ServeTraffic& traffic = one.question.traffic;
    Planner planner(one.question.plan.model.spec, detail::query_of(one.question),
                    one.question.plan.rates);
    detail::Simulation simulation(planner, one.question, one.choice);
    if (!simulation.holds(detail::requests_of(traffic))) continue;
    CAPTURE(i);
    visit(random, traffic, simulation);
  }
}

}  // namespace headroom::test
