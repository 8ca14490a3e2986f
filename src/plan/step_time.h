// Parts of a training step's time that its figures and its timeline share. Internal to src/plan.
#pragma once

#include <cstdint>

#include "data_parallel_communication.h"
#include "headroom/timeline.h"
#include "stage_states.h"

namespace headroom::detail {

/// Seconds of one micro-batch in layers with these costs.
[[nodiscard]] MicroBatchTime layers_time(const SectionCosts& layers,
                                         const Recomputation& recompute);

/// Seconds of one micro-batch on a stage, its sections outside the layers included.
[[nodiscard]] MicroBatchTime stage_time(const RankCosts& costs, const StageCosts& layers,
                                        const Recomputation& recompute, const PipelineStage& stage);

/// Seconds of all calls of a data-parallel collective that do not overlap with the passes of the
/// slowest stage, which has `layers` layers; one call takes `seconds`. If it overlaps, it runs
/// layer by layer during a pass; the excess over the pass is exposed, and at least the last layer.
[[nodiscard]] double exposed_seconds(const DataParallelCollective& call, double seconds,
                                     const PlanChoice& choice, const MicroBatchTime& slowest,
                                     std::int64_t layers);

/// Seconds of the optimizer on a rank of a stage with these states.
[[nodiscard]] double optimizer_seconds(const SectionStates& states, const PlanChoice& choice,
                                       const DeviceRates& rates);

}  // namespace headroom::detail
