#include "data_parallel_communication.h"

namespace headroom::detail {
namespace {

/// Collectives of `states`, which `copies` ranks hold and `ranks` of them shard.
void add_collectives(const StateBytes& states, std::int64_t copies, std::int64_t ranks, Zero zero,
                     double micro_batches, std::vector<DataParallelCollective>& collectives) {
  if (copies == 1 || states.gradients == 0) return;
  if (zero != Zero::none && ranks < copies) {
    // Groups of shards are replicas of each other (HSDP): they add up their shards' gradients.
    const double shard = static_cast<double>(states.gradients) / static_cast<double>(ranks);
    collectives.push_back({CollectiveKind::all_reduce, shard, copies / ranks, 1, true});
  }
  if (zero == Zero::none) ranks = copies;
  if (ranks == 1) return;
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
  const auto add = [&](const StateBytes& states, std::int64_t copies) {
    add_collectives(states, copies, zero_ranks(choice, copies), choice.zero, micro_batches,
                    collectives);
  };
  add(stage.dense, plan.replicas());
  add(stage.experts, plan.expert_replicas() / plan.expert);
  return collectives;
}

}  // namespace headroom::detail
