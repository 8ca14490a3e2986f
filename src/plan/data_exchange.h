// Exchanges of a training step among the ranks that hold the same weights. Internal to src/plan.
#pragma once

#include <vector>

#include "planner.h"

namespace headroom::detail {

struct DataExchange {
  CollectiveKind kind = CollectiveKind::none;
  double bytes = 0;  ///< as Collective::bytes
  std::int64_t ranks = 1;
  double times = 1;
  bool backward = true;  ///< hidden behind backward passes, not forward ones
};

/// ZeRO 0: gradients are summed once. 1: reduced to their owners once, and weights gathered. 2: the
/// same, but gradients are reduced for every micro-batch, since no rank has room for all. 3:
/// weights are gathered for every forward and backward pass (arXiv 1910.02054, section 7). Experts
/// are held by fewer ranks, and exchanged among those.
[[nodiscard]] std::vector<DataExchange> data_exchanges(const SectionStates& stage,
                                                       const PlanChoice& choice, double passes);

/// part/whole of some states, rounded up.
[[nodiscard]] StateBytes divided(const StateBytes& states, Integer part, Integer whole);

/// One rank's share of a stage's states.
[[nodiscard]] StateBytes held_by_rank(const SectionStates& states, const PlanChoice& choice);

/// States of the stage with layers and all else, before ZeRO shares them out.
[[nodiscard]] SectionStates all_states(const StageCosts& costs, const RankStates& states,
                                       const StageShare& stage);

}  // namespace headroom::detail
