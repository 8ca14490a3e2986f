#include "data_parallel_communication.h"

namespace headroom::detail {
namespace {

void add_collectives(const StateBytes& states, std::int64_t ranks, Zero zero, double micro_batches,
                     std::vector<DataParallelCollective>& collectives) {
  if (ranks == 1 || states.gradients == 0) return;
  const auto gradients = static_cast<double>(states.gradients);
  const double gradient_shard = gradients / static_cast<double>(ranks);
  const double weight_shard = static_cast<double>(states.weights) / static_cast<double>(ranks);
  const auto reduce = [&](double count) {
    collectives.push_back({CollectiveKind::reduce_scatter, gradient_shard, ranks, count, true});
  };
  const auto gather = [&](double count, bool backward) {
    collectives.push_back({CollectiveKind::all_gather, weight_shard, ranks, count, backward});
  };
  switch (zero) {
    case Zero::none:
      collectives.push_back({CollectiveKind::all_reduce, gradients, ranks, 1, true});
      return;
    case Zero::optimizer:
      reduce(1);
      gather(1, false);
      return;
    case Zero::gradients:
      reduce(micro_batches);
      gather(1, false);
      return;
    case Zero::weights:
      break;
  }
  reduce(micro_batches);
  gather(micro_batches, true);
  gather(micro_batches, false);
}

}  // namespace

std::vector<DataParallelCollective> data_parallel_collectives(const SectionStates& stage,
                                                              const PlanChoice& choice,
                                                              double micro_batches) {
  const ParallelPlan& plan = choice.parallel;
  std::vector<DataParallelCollective> collectives;
  add_collectives(stage.dense, plan.replicas(), choice.zero, micro_batches, collectives);
  add_collectives(stage.experts, plan.replicas() / plan.expert, choice.zero, micro_batches,
                  collectives);
  return collectives;
}

}  // namespace headroom::detail
