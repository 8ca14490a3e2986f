#include "data_exchange.h"

namespace headroom::detail {
namespace {

void add_exchanges(const StateBytes& states, std::int64_t ranks, Zero zero, double passes,
                   std::vector<DataExchange>& exchanges) {
  if (ranks == 1 || states.gradients == 0) return;
  const auto count = static_cast<double>(ranks);
  const auto gradients = static_cast<double>(states.gradients);
  const auto weights = static_cast<double>(states.weights);
  const auto reduce = [&](double times) {
    exchanges.push_back({CollectiveKind::reduce_scatter, gradients / count, ranks, times, true});
  };
  const auto gather = [&](double times, bool backward) {
    exchanges.push_back({CollectiveKind::all_gather, weights / count, ranks, times, backward});
  };
  switch (zero) {
    case Zero::none:
      exchanges.push_back({CollectiveKind::all_reduce, gradients, ranks, 1, true});
      return;
    case Zero::optimizer:
      reduce(1);
      gather(1, false);
      return;
    case Zero::gradients:
      reduce(passes);
      gather(1, false);
      return;
    case Zero::weights:
      break;
  }
  reduce(passes);
  gather(passes, true);
  gather(passes, false);
}

}  // namespace

std::vector<DataExchange> data_exchanges(const SectionStates& stage, const PlanChoice& choice,
                                         double passes) {
  const ParallelPlan& plan = choice.parallel;
  std::vector<DataExchange> exchanges;
  add_exchanges(stage.shared, plan.replicas(), choice.zero, passes, exchanges);
  add_exchanges(stage.experts, plan.replicas() / plan.expert, choice.zero, passes, exchanges);
  return exchanges;
}

StateBytes divided(const StateBytes& states, Integer part, Integer whole) {
  if (part == whole) return states;
  const auto share = [&](Integer bytes) { return ceil_div(checked_multiply(bytes, part), whole); };
  return {share(states.weights), share(states.gradients), share(states.optimizer)};
}

StateBytes held_by_rank(const SectionStates& states, const PlanChoice& choice) {
  const ParallelPlan& plan = choice.parallel;
  StateBytes held = shared_out(states.shared, choice.zero, plan.replicas());
  if (states.experts.weights > 0) {
    held += shared_out(states.experts, choice.zero, plan.replicas() / plan.expert);
  }
  return held;
}

SectionStates all_states(const StageCosts& costs, const RankStates& states,
                         const StageShare& stage) {
  SectionStates all = costs.states;
  for (const OutsideStates& outside : states.outside) {
    if ((outside.used_by & stage.sections) != 0) all.shared += outside.states;
  }
  return all;
}

}  // namespace headroom::detail
