#include "data_parallel_communication.h"

namespace headroom::detail {
namespace {

/// Ranks with the same states.
struct Holders {
  std::int64_t copies = 1;
  std::int64_t ranks = 1;  ///< that shard them
  std::int64_t apart = 1;  ///< devices from one to the next
};

/// Groups of shards are replicas of each other (HSDP): they add up their shards' gradients.
void add_replicas_sum(const StateBytes& states, const Holders& holders,
                      std::vector<DataParallelCollective>& collectives) {
  if (holders.ranks == holders.copies) return;
  const double shard = static_cast<double>(states.gradients) / static_cast<double>(holders.ranks);
  collectives.push_back({CollectiveKind::all_reduce, shard, holders.copies / holders.ranks, 1, true,
                         holders.ranks * holders.apart});
}

/// Collectives of a group of shards.
void add_shards(const StateBytes& states, const Holders& holders, Zero zero, double micro_batches,
                std::vector<DataParallelCollective>& collectives) {
  if (holders.ranks == 1) return;
  const auto ranks = static_cast<double>(holders.ranks);
  const double gradient_shard = static_cast<double>(states.gradients) / ranks;
  const double weight_shard = static_cast<double>(states.sent_weights()) / ranks;
  const auto reduce = [&](double count) {
    collectives.push_back({CollectiveKind::reduce_scatter, gradient_shard, holders.ranks, count,
                           true, holders.apart});
  };
  const auto gather = [&](double count, bool backward) {
    collectives.push_back(
        {CollectiveKind::all_gather, weight_shard, holders.ranks, count, backward, holders.apart});
  };
  switch (zero) {
    case Zero::none:
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

/// Collectives of `states`.
void add_collectives(const StateBytes& states, const Holders& holders, Zero zero,
                     double micro_batches, std::vector<DataParallelCollective>& collectives) {
  if (holders.copies == 1 || states.gradients == 0) return;
  if (zero == Zero::none) {
    collectives.push_back({CollectiveKind::all_reduce, static_cast<double>(states.gradients),
                           holders.copies, 1, true, holders.apart});
    return;
  }
  add_replicas_sum(states, holders, collectives);
  add_shards(states, holders, zero, micro_batches, collectives);
}

}  // namespace

std::vector<DataParallelCollective> data_parallel_collectives(const SectionStates& stage,
                                                              const PlanChoice& choice,
                                                              double micro_batches) {
  const ParallelPlan& plan = choice.parallel;
  std::vector<DataParallelCollective> collectives;
  const auto add = [&](const StateBytes& states, std::int64_t copies, std::int64_t apart) {
    add_collectives(states, {copies, zero_ranks(choice, copies), apart}, choice.zero, micro_batches,
                    collectives);
  };
  const bool whole_experts = plan.expert_tensor == ExpertTensor::whole;
  const std::int64_t copies = pipeline_copies(choice);
  add(stage.dense, copies * plan.replicas(), plan.tensor);
  add(stage.experts, copies * plan.expert_replicas() / plan.expert,
      whole_experts ? plan.expert : plan.tensor * plan.expert);
  return collectives;
}

}  // namespace headroom::detail
