// Communication of a training step among the replicas of a stage. Internal to src/plan.
#pragma once

#include <vector>

#include "stage_states.h"

namespace headroom::detail {

struct DataParallelCollective {
  CollectiveKind kind = CollectiveKind::none;
  double bytes = 0;  ///< as Collective::bytes
  std::int64_t ranks = 1;
  double count = 1;        ///< per iteration
  bool backward = true;    ///< overlaps with backward passes, otherwise with forward passes
  std::int64_t apart = 1;  ///< devices from one rank of the group to the next
};

/// ZeRO 0: one all-reduce of the gradients. 1: one reduce-scatter of the gradients and one
/// all-gather of the weights. 2: as 1, but gradients are reduced for every micro-batch, since no
/// rank stores all. 3: weights are gathered for every forward and backward pass (arXiv 1910.02054,
/// section 7). Experts communicate among the fewer ranks that store them.
[[nodiscard]] std::vector<DataParallelCollective> data_parallel_collectives(
    const SectionStates& stage, const PlanChoice& choice, double micro_batches);

}  // namespace headroom::detail
