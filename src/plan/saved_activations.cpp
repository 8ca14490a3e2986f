#include "saved_activations.h"

#include <algorithm>

namespace headroom::detail {
namespace {

/// Offloaded layers whose saved tensors the device holds at once: one that computes, and one whose
/// tensors travel.
constexpr std::int64_t kLayersInFlight = 2;

/// Bytes that the modules of selective recompute do not save.
Integer dropped_bytes(const SectionCosts& layers, const Recomputation& recompute) {
  Integer bytes = 0;
  for (std::size_t i = 0; i < kLayerParts; ++i) {
    if (recompute.modules.recompute(static_cast<LayerPart>(i))) bytes += layers.saved_parts[i];
  }
  return bytes;
}

/// `layers` of the stage's layers' part of `saved`, rounded up.
Integer part_of(Integer saved, std::int64_t layers, const PipelineStage& stage) {
  return ceil_div(checked_multiply(saved, layers), stage.layers);
}

}  // namespace

Integer saved_by_layers(const StageCosts& costs, const PlanChoice& choice,
                        const PipelineStage& stage, std::int64_t in_flight) {
  const std::int64_t v = choice.parallel.interleave;
  switch (choice.recompute.kind) {
    case Recompute::none:
      return ceil_div(checked_multiply(costs.layers.saved, in_flight), v);
    case Recompute::selective:
      return ceil_div(
          checked_multiply(costs.layers.saved - dropped_bytes(costs.layers, choice.recompute),
                           in_flight),
          v);
    case Recompute::full:
      break;
  }
  const std::int64_t chunk_layers = ceil_div(stage.layers, v);
  const Integer saved_inputs = ceil_div(chunk_layers, choice.recompute.every);
  return ceil_div(
      checked_multiply(costs.layers.layer_inputs, checked_multiply(saved_inputs, in_flight)),
      stage.layers);
}

Integer offloaded_bytes(Integer saved, const PlanChoice& choice, const PipelineStage& stage) {
  return part_of(saved, std::min(choice.step.offload_layers, stage.layers), stage);
}

Integer kept_on_device(Integer saved, const PlanChoice& choice, const PipelineStage& stage) {
  if (choice.step.offload_layers == 0) return saved;
  const std::int64_t offloaded = std::min(choice.step.offload_layers, stage.layers);
  const std::int64_t held = stage.layers - offloaded + std::min(offloaded, kLayersInFlight);
  return part_of(saved, held, stage);
}

}  // namespace headroom::detail
