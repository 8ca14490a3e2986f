// Plans one decision away from a given one.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "headroom/plan.h"

namespace headroom {
namespace {

/// A degree and its name. A neighbour moves devices from one degree to another.
struct Degree {
  const char* name;
  std::int64_t ParallelPlan::*value;
};
constexpr std::array<Degree, 4> kDegrees{{{"tp", &ParallelPlan::tensor},
                                          {"pp", &ParallelPlan::pipeline},
                                          {"dp", &ParallelPlan::data},
                                          {"cp", &ParallelPlan::context}}};
constexpr std::array<const char*, 4> kZeroNames{"ZeRO 0", "ZeRO 1", "ZeRO 2", "ZeRO 3"};

std::int64_t least_factor(std::int64_t number) {
  for (std::int64_t n = 2; n <= number / n; ++n) {
    if (number % n == 0) return n;
  }
  return number;
}

using Change = std::pair<std::string, PlanChoice>;

void unshard_sequence(PlanChoice& choice) {
  choice.parallel.sequence = SequenceParallel::off;
  choice.step.tensor_overlap = TensorOverlap::off;
}

void move_devices(const PlanChoice& choice, std::vector<Change>& changes) {
  for (const Degree& from : kDegrees) {
    if (choice.parallel.*from.value == 1) continue;
    const std::int64_t factor = least_factor(choice.parallel.*from.value);
    for (const Degree& to : kDegrees) {
      if (to.value == from.value) continue;
      PlanChoice next = choice;
      next.parallel.*from.value /= factor;
      next.parallel.*to.value *= factor;
      if (next.parallel.tensor == 1) unshard_sequence(next);
      if (next.parallel.pipeline == 1) next.parallel.interleave = 1;
      changes.emplace_back(fmt::format("{} {}, {} {}", from.name, next.parallel.*from.value,
                                       to.name, next.parallel.*to.value),
                           next);
    }
  }
}

void move_experts(const PlanChoice& choice, std::vector<Change>& changes) {
  for (const std::int64_t expert : {choice.parallel.expert * 2, choice.parallel.expert / 2}) {
    PlanChoice next = choice;
    next.parallel.expert = expert;
    changes.emplace_back(fmt::format("ep {}", expert), next);
  }
}

/// The change that turns sequence parallelism off, with the option that needs it.
const char* without_sequence(const PlanChoice& choice) {
  return choice.step.tensor_overlap == TensorOverlap::on ? "without sp and tp-comm-overlap"
                                                         : "without sp";
}

void change_schedule(const PlanChoice& choice, std::vector<Change>& changes) {
  const bool on = choice.parallel.sequence == SequenceParallel::on;
  PlanChoice next = choice;
  next.parallel.sequence = SequenceParallel::on;
  if (on) unshard_sequence(next);
  changes.emplace_back(on ? without_sequence(choice) : "with sp", next);
  for (const std::int64_t micro_batch : {choice.micro_batch * 2, choice.micro_batch / 2}) {
    next = choice;
    next.micro_batch = micro_batch;
    changes.emplace_back(fmt::format("micro-batch {}", micro_batch), next);
  }
  for (const std::int64_t interleave :
       {choice.parallel.interleave * 2, choice.parallel.interleave / 2}) {
    next = choice;
    next.parallel.interleave = interleave;
    changes.emplace_back(fmt::format("interleave {}", interleave), next);
  }
}

void change_memory(const PlanChoice& choice, bool eager, std::vector<Change>& changes) {
  for (const Recomputation recompute :
       {Recomputation{Recompute::none, 1}, Recomputation{Recompute::selective, 1},
        Recomputation{Recompute::full, 1}}) {
    const bool is_noop = recompute.kind == Recompute::selective && !eager;
    if (recompute == choice.recompute || is_noop) continue;
    PlanChoice next = choice;
    next.recompute = recompute;
    changes.emplace_back(fmt::format("recompute {}", name_of(recompute)), next);
  }
  if (choice.parallel.replicas() == 1) return;
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::weights}) {
    if (zero == choice.zero) continue;
    PlanChoice next = choice;
    next.zero = zero;
    changes.emplace_back(kZeroNames.at(static_cast<std::size_t>(zero)), next);
  }
}

}  // namespace

std::vector<Neighbour> neighbours_of(Planner& planner, const PlanChoice& choice, const Load& load) {
  const bool trains = planner.query().purpose == Purpose::train;
  const ShardingLimits limits = planner.limits(load.seq_len);
  std::vector<Change> changes;
  move_devices(choice, changes);
  if (limits.experts > 0) move_experts(choice, changes);
  if (trains) {
    change_schedule(choice, changes);
    change_memory(choice, planner.query().attention == AttentionImplementation::eager, changes);
  }
  std::vector<Neighbour> neighbours;
  for (auto& [change, plan] : changes) {
    const bool idles_replicas =
        plan.parallel.data * (trains ? plan.micro_batch : 1) > load.batch_size;
    if (idles_replicas || broken_rule(plan, load, limits)) continue;
    const PlanFigures figures = planner.evaluate(plan, load);
    neighbours.push_back({change,
                          {plan, figures.memory.total(), figures.time.iteration_s},
                          figures,
                          planner.fits(figures)});
  }
  return neighbours;
}

}  // namespace headroom
