// Parts of a training step's time that its figures and its timeline share. Internal to src/plan.
#pragma once

#include <cstdint>

#include "data_parallel_communication.h"
#include "headroom/timeline.h"
#include "stage_states.h"

namespace headroom::detail {

/// How a step runs its passes.
struct StepPasses {
  Recomputation recompute;
  double backward = 1;  ///< seconds of a backward pass over those of Megatron-LM's kernels
  TensorOverlap tensor_overlap = TensorOverlap::off;
  double host_bytes_per_s = 1;  ///< of copies to the host's memory, or from it
};

/// Plans that shard gradients or weights run in PyTorch (FSDP, DeepSpeed), whose backward pass
/// takes longer (docs/device-time.md), unless Transformer Engine's or DeepSeek's recipe does.
[[nodiscard]] StepPasses passes_of(const PlanChoice& choice, const StatePolicy& policy,
                                   const DeviceRates& rates) noexcept;

/// Seconds of one micro-batch in layers with these costs.
[[nodiscard]] MicroBatchTime layers_time(const SectionCosts& layers, const StepPasses& passes);

/// Seconds of one micro-batch on a stage, its sections outside the layers included. A pass takes
/// its own time or that of the offloaded activations' copies, whichever is longer.
[[nodiscard]] MicroBatchTime stage_time(const RankCosts& costs, const StageCosts& layers,
                                        const PlanChoice& choice, const StepPasses& passes,
                                        const PipelineStage& stage);

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
