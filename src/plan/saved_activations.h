// Activations that a stage's layers save for the backward passes, and those of them that are
// offloaded to the host's memory. Internal to src/plan.
#pragma once

#include "stage_states.h"

namespace headroom::detail {

/// Bytes that the stage's layers save for the backward passes of `in_flight` chunks of the model,
/// on the device and on the host.
[[nodiscard]] Integer saved_by_layers(const StageCosts& costs, const PlanChoice& choice,
                                      const PipelineStage& stage, std::int64_t in_flight);

/// Bytes of one micro-batch that are copied to the host in its forward pass, and back in its
/// backward pass: the offloaded layers' part of `saved`.
[[nodiscard]] Integer offloaded_bytes(Integer saved, const PlanChoice& choice,
                                      const PipelineStage& stage);

/// Bytes of `saved` that the device holds at most: of offloaded layers, two at once, the layer that
/// computes and the one being copied (Transformer Engine,
/// transformer_engine/pytorch/cpu_offload.py).
[[nodiscard]] Integer kept_on_device(Integer saved, const PlanChoice& choice,
                                     const PipelineStage& stage);

}  // namespace headroom::detail
