#include "size_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "arrivals.h"
#include "simulation.h"

namespace headroom::detail {
namespace {

/// True if `fixed` leaves this degree open or asks for it.
bool allows(const std::optional<std::int64_t>& fixed, std::int64_t degree) {
  return !fixed || *fixed == degree;
}

std::vector<PlanChoice> plans_of(std::int64_t devices, const FixedDegrees& fixed,
                                 std::int64_t prefill_replicas) {
  std::vector<PlanChoice> plans;
  for (std::int64_t tensor = 1; tensor <= devices; tensor *= 2) {
    for (std::int64_t pipeline = 1; tensor * pipeline <= devices; pipeline *= 2) {
      for (std::int64_t expert = 1; expert <= devices; expert *= 2) {
        PlanChoice choice;
        choice.parallel.tensor = tensor;
        choice.parallel.pipeline = pipeline;
        choice.parallel.expert = expert;
        choice.parallel.data = devices / (tensor * pipeline);
        if (fixed.sequence) choice.parallel.sequence = *fixed.sequence;
        const bool decodes = choice.parallel.data > prefill_replicas;
        const bool asked = decodes && allows(fixed.tensor, tensor) &&
                           allows(fixed.pipeline, pipeline) && allows(fixed.expert, expert) &&
                           allows(fixed.data, choice.parallel.data);
        if (asked) plans.push_back(choice);
      }
    }
  }
  return plans;
}

/// The largest of latency over target; above 1 if one is missed. Without targets: seconds per
/// request.
double strain(const ServeFigures& figures, const LatencyTargets& targets) {
  if (targets.empty()) return figures.end_to_end.mean;
  double most = 0;
  const auto raise = [&](const LatencySummary& latency, const std::optional<double>& limit) {
    if (limit) most = std::max(most, latency.at_target / *limit);
  };
  raise(figures.ttft, targets.ttft_s);
  if (figures.tpot) raise(*figures.tpot, targets.tpot_s);
  raise(figures.end_to_end, targets.end_to_end_s);
  return most;
}

std::vector<ServedPlan> served_plans(Planner& planner, const ServeQuestion& question,
                                     const std::vector<PlanChoice>& choices) {
  const std::vector<ServeRequest> requests = requests_of(question.traffic);
  std::vector<ServedPlan> plans;
  for (const PlanChoice& choice : choices) {
    try {
      Simulation simulation(planner, question, choice);
      if (!simulation.holds(requests)) continue;
      ServedPlan served{choice,
                        simulation.cache(),
                        simulation.run(question.traffic, question.targets.percentile),
                        {},
                        0};
      served.time_range = planner.time_range(choice, served.figures.compute_share);
      served.verdict = verdict_of(served.figures, question.targets);
      plans.push_back(served);
    } catch (const IllegalPlan&) {
      continue;
    }
  }
  std::ranges::stable_sort(
      plans, {}, [&](const ServedPlan& plan) { return strain(plan.figures, question.targets); });
  return plans;
}

bool keeps_targets_at(Simulation& simulation, const ServeQuestion& question, double rate) {
  ServeTraffic traffic = question.traffic;
  traffic.arrivals = PoissonArrivals{rate};
  const ServeFigures figures = simulation.run(traffic, question.targets.percentile);
  return verdict_of(figures, question.targets).met();
}

}  // namespace

SizeSearch search_sizes(Planner& planner, const ServeQuestion& question, const FixedDegrees& fixed,
                        std::int64_t most_devices) {
  SizeSearch search;
  for (std::int64_t devices = 1; devices <= most_devices; devices *= 2) {
    std::vector<ServedPlan> plans =
        served_plans(planner, question, plans_of(devices, fixed, question.limits.prefill_replicas));
    search.simulated += static_cast<std::int64_t>(plans.size());
    if (plans.empty()) continue;
    search.plans = std::move(plans);
    if (search.plans.front().verdict.met()) break;
  }
  return search;
}

std::optional<double> largest_rate(Planner& planner, const ServeQuestion& question,
                                   const PlanChoice& choice) {
  constexpr double kFarthest = 100;
  constexpr double kPrecision = 1.02;
  const auto* poisson = std::get_if<PoissonArrivals>(&question.traffic.arrivals);
  if (poisson == nullptr || question.targets.empty()) return std::nullopt;
  Simulation simulation(planner, question, choice);
  double kept = poisson->requests_per_s;
  // Slower requests of one seed arrive in proportion later.
  const double arrivals_s = requests_of(question.traffic).back().arrival_s;
  const double slowest = std::max(kept / kFarthest, kept * arrivals_s / kLongestArrivals_s);
  while (!keeps_targets_at(simulation, question, kept)) {
    kept /= 2;
    if (kept < slowest) return std::nullopt;
  }
  double missed = 2 * kept;
  while (keeps_targets_at(simulation, question, missed)) {
    kept = missed;
    missed *= 2;
    // Short simulations may keep any rate: their requests all arrive at once.
    if (kept > kFarthest * poisson->requests_per_s) return kept;
  }
  while (missed > kPrecision * kept) {
    const double middle = std::sqrt(kept * missed);
    (keeps_targets_at(simulation, question, middle) ? kept : missed) = middle;
  }
  return kept;
}

}  // namespace headroom::detail
