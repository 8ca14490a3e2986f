// Seconds of one micro-batch on a stage, of data-parallel communication that is exposed, and of the
// optimizer.
#include "step_time.h"

#include <algorithm>

#include "saved_activations.h"

namespace headroom::detail {
namespace {

/// Over Megatron-LM's backward pass, whose rates a machine's are. Fitted to MosaicML's steps of 1
/// to 70 billion parameters on A100, and judged on those on H100 and on torchtitan's
/// (reports/published.md): FSDP gathers weights, copies and casts gradients, and its collectives
/// take processors and bandwidth from the GEMMs.
constexpr double kPyTorchBackward = 1.35;

/// Seconds of a forward pass's communication that GEMMs do not hide.
double forward_communication(const SectionCosts& costs, const StepPasses& passes) {
  const bool hides = passes.tensor_overlap == TensorOverlap::on;
  return costs.forward_communication_s - (hides ? costs.forward_hidden_s : 0);
}

void add_section(const SectionCosts& costs, const StepPasses& passes, MicroBatchTime& time) {
  time.forward_s += costs.forward_s;
  time.backward_s += passes.backward * costs.backward_s;
  time.forward_communication_s += forward_communication(costs, passes);
  time.backward_communication_s += costs.backward_communication_s;
  if (passes.tensor_overlap == TensorOverlap::on) {
    time.backward_communication_s -= costs.backward_hidden_s;
  }
}

/// The forward of the modules that run again, with their collectives (Megatron-LM's checkpoint runs
/// all of them).
void add_recomputed(const SectionCosts& layers, const StepPasses& passes, MicroBatchTime& time) {
  const bool hides = passes.tensor_overlap == TensorOverlap::on;
  for (std::size_t i = 0; i < kLayerParts; ++i) {
    if (!passes.recompute.modules.recompute(static_cast<LayerPart>(i))) continue;
    time.backward_s += layers.part_s[i];
    time.backward_communication_s +=
        layers.part_communication_s[i] - (hides ? layers.part_hidden_s[i] : 0);
  }
}

/// Sets what copies of offloaded activations take beyond the passes.
void add_copies(const StageCosts& layers, const PlanChoice& choice, const StepPasses& passes,
                const PipelineStage& stage, MicroBatchTime& time) {
  if (choice.step.offload_layers == 0) return;
  const Integer saved = saved_by_layers(layers, choice, stage, choice.parallel.interleave);
  const double copies_s =
      static_cast<double>(offloaded_bytes(saved, choice, stage)) / passes.host_bytes_per_s;
  time.forward_copies_s = std::max(0.0, copies_s - time.forward_s - time.forward_communication_s);
  time.backward_copies_s =
      std::max(0.0, copies_s - time.backward_s - time.backward_communication_s);
}

/// Bytes that the optimizer moves: reads and writes its states, reads the gradients for their norm
/// and for the update, writes the weights, and clears the stored gradients. With ZeRO a rank
/// updates its shard.
Integer optimizer_bytes(const SectionStates& states, const PlanChoice& choice) {
  const StateBytes stored = stored_by_rank(states, choice);
  const StateBytes updated = updated_by_rank(states, choice);
  return 2 * updated.optimizer + 2 * updated.gradients + updated.weights + stored.gradients;
}

/// Bytes per second of the host's memory for one device's states.
constexpr double kHostMemoryBytes = 40e9;  // eight channels of DDR5-5600 for eight devices; assumed

}  // namespace

StepPasses passes_of(const PlanChoice& choice, const StatePolicy& policy,
                     const DeviceRates& rates) noexcept {
  StepPasses passes{choice.recompute, 1, choice.step.tensor_overlap, rates.host_bytes_per_s};
  const bool shards = choice.zero == Zero::gradients || choice.zero == Zero::weights;
  const bool in_pytorch = shards && choice.parallel.replicas() > 1;
  const bool in_float8 = info(policy.recipe).arithmetic == DType::float8;
  if (in_pytorch && !in_float8) passes.backward = kPyTorchBackward;
  return passes;
}

MicroBatchTime layers_time(const SectionCosts& layers, const StepPasses& passes) {
  MicroBatchTime time;
  add_section(layers, passes, time);
  switch (passes.recompute.kind) {
    case Recompute::none:
      break;
    case Recompute::selective:
      add_recomputed(layers, passes, time);
      break;
    case Recompute::full:
      time.backward_s += layers.forward_s;
      time.backward_communication_s += forward_communication(layers, passes);
      break;
  }
  return time;
}

MicroBatchTime stage_time(const RankCosts& costs, const StageCosts& layers,
                          const PlanChoice& choice, const StepPasses& passes,
                          const PipelineStage& stage) {
  MicroBatchTime time = layers_time(layers.layers, passes);
  for (std::size_t i = 0; i < costs.outside.size(); ++i) {
    if (stage.runs(static_cast<Section::Kind>(i))) add_section(costs.outside[i], passes, time);
  }
  add_copies(layers, choice, passes, stage, time);
  return time;
}

double exposed_seconds(const DataParallelCollective& call, double seconds, const PlanChoice& choice,
                       const MicroBatchTime& slowest, std::int64_t layers) {
  const bool by_zero = choice.step.overlap == DataOverlap::by_zero;
  const bool overlaps =
      by_zero ? choice.zero != Zero::optimizer : choice.step.overlap == DataOverlap::on;
  if (!overlaps) return call.count * seconds;
  const double pass_s = call.backward ? slowest.backward_s : slowest.forward_s;
  return call.count * std::max(seconds / static_cast<double>(layers), seconds - pass_s);
}

/// On the host, 16-bit gradients go there, weights come back, and the host moves the states
/// (ZeRO-Offload, arXiv 2101.06840, section 3).
double optimizer_seconds(const SectionStates& states, const PlanChoice& choice,
                         const DeviceRates& rates) {
  const double device_rate = rates.memory_bytes_per_s * rates.efficiency.memory;
  const auto moved = static_cast<double>(optimizer_bytes(states, choice));
  if (choice.step.offload == Offload::none) return moved / device_rate;
  const StateBytes updated = updated_by_rank(states, choice);
  const auto link = static_cast<double>(2 * updated.sent_weights());
  const auto states_moved = static_cast<double>(2 * updated.optimizer);
  return link / rates.host_bytes_per_s + states_moved / kHostMemoryBytes;
}

}  // namespace headroom::detail
