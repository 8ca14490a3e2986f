// One training step: memory of the worst pipeline stage, and the time of all micro-batches through
// all stages.
#include <algorithm>

#include "data_parallel_communication.h"
#include "plan_memory.h"
#include "planner.h"
#include "saved_activations.h"
#include "step_time.h"

namespace headroom {
namespace {

using detail::PipelineStage;
using detail::RankCosts;
using detail::RankStates;
using detail::Section;
using detail::SectionCosts;
using detail::SectionStates;
using detail::StageCosts;

/// Model chunks, summed over micro-batches, whose activations a stage stores at once. 1F1B stores
/// as many as there are stages from this one on; interleaved, rank i stores 2·(p − i − 1) + (v −
/// 1)·p + 1 chunks (arXiv 2104.04473, section 2.2; 2205.05198, section 4.2.3).
std::int64_t chunks_in_flight(const PipelineStage& stage, const PlanChoice& choice,
                              std::int64_t micro_batches) {
  const ParallelPlan& plan = choice.parallel;
  if (plan.pipeline == 1) return 1;
  // From both ends at once, every rank stores p + 1 (arXiv 2412.19437, Table 2).
  if (choice.step.schedule == PipelineSchedule::dual_pipe) {
    return std::min(plan.pipeline + 1, micro_batches);
  }
  const std::int64_t p = plan.pipeline;
  const std::int64_t v = plan.interleave;
  const std::int64_t remaining = p - stage.index;  // stages from this one on
  const std::int64_t chunks = v == 1 ? remaining : 2 * (remaining - 1) + (v - 1) * p + 1;
  return std::min(chunks, v * micro_batches);
}

/// Micro-batches in flight of operators outside the layers: embeddings, norms, head.
std::int64_t micro_batches_in_flight(const PipelineStage& stage, const PlanChoice& choice,
                                     std::int64_t micro_batches) {
  const ParallelPlan& plan = choice.parallel;
  if (plan.pipeline == 1) return 1;
  if (choice.step.schedule == PipelineSchedule::dual_pipe) {
    return std::min(plan.pipeline + 1, micro_batches);
  }
  const std::int64_t remaining = plan.pipeline - stage.index;
  return std::min(plan.interleave == 1 ? remaining : 2 * remaining - 1, micro_batches);
}

/// Bytes that operators outside the layers save for the backward passes. A loss in chunks saves no
/// logits, but gradients as large as the head's input, which it then needs no more.
Integer outside_activations(const RankCosts& costs, const PlanChoice& choice,
                            const PipelineStage& stage) {
  Integer bytes = 0;
  for (std::size_t i = 0; i < costs.outside.size(); ++i) {
    if (stage.runs(static_cast<Section::Kind>(i))) bytes += costs.outside[i].saved;
  }
  const bool drops = choice.step.loss_chunks > 1 && stage.runs(Section::Kind::main_last);
  return drops ? bytes - costs.saved_logits : bytes;
}

/// Bytes of the largest module that is made again at once: experts with their activation and the
/// shared expert beside them.
Integer largest_module(const StageCosts& costs, const RecomputeModules& modules) {
  const auto bytes_of = [&](LayerPart part) {
    return modules.recompute(part) ? costs.largest_parts.at(static_cast<std::size_t>(part))
                                   : Integer{0};
  };
  return std::max({bytes_of(LayerPart::attention_core), bytes_of(LayerPart::norm),
                   bytes_of(LayerPart::latent_expansion), bytes_of(LayerPart::dense_ffn),
                   bytes_of(LayerPart::experts) + bytes_of(LayerPart::expert_activation) +
                       bytes_of(LayerPart::shared_expert)});
}

/// Bytes that one micro-batch recomputes for its backward pass.
Integer recomputed_bytes(const StageCosts& costs, const Recomputation& recompute,
                         const PipelineStage& stage) {
  switch (recompute.kind) {
    case Recompute::none:
      return 0;
    case Recompute::selective:
      return largest_module(costs, recompute.modules);
    case Recompute::full:
      break;
  }
  return checked_multiply(costs.largest_saved, std::min(recompute.every, stage.layers));
}

/// Layers whose weights ZeRO-3 stores whole at once: the running one and the next.
constexpr Integer kGatheredLayers = 2;

/// Bytes at the loss beside what is saved for it: logits in float32 and their gradient, in all two
/// more copies of the logits (Megatron-LM's cross_entropy.py). In chunks: one of the logits, in
/// place of which their gradient is written, and the gradient of the head's weights in their type
/// (Liger Kernel, src/liger_kernel/ops/fused_linear_cross_entropy.py).
Integer bytes_at_loss(const RankCosts& costs, const PlanChoice& choice, const StatePolicy& policy,
                      const PipelineStage& stage) {
  if (!stage.runs(Section::Kind::main_last)) return 0;
  if (choice.step.loss_chunks == 1) return checked_multiply(2, costs.logits);
  return checked_add(ceil_div(costs.logits, choice.step.loss_chunks),
                     checked_multiply(costs.head_weights, info(policy.recipe).weight_bytes));
}

/// Bytes of the backward pass's largest moment beside what is saved for it. In a layer: the
/// gradients of one operator's inputs and output, the residual stream's beside them, and the layers
/// that are computed again.
Integer backward_bytes(const RankCosts& costs, const StageCosts& layers, const PlanChoice& choice,
                       const StatePolicy& policy, const PipelineStage& stage) {
  const Integer at_loss = bytes_at_loss(costs, choice, policy, stage);
  const Integer in_layer =
      checked_add(layers.largest_gradients, recomputed_bytes(layers, choice.recompute, stage));
  return checked_add(costs.hidden, std::max(at_loss, in_layer));
}

TrainingBuffers training_buffers(const RankCosts& costs, const RankStates& states,
                                 const StageCosts& layers, const PlanChoice& choice,
                                 const StatePolicy& policy, const PipelineStage& stage) {
  const ParallelPlan& plan = choice.parallel;
  TrainingBuffers buffers;
  buffers.backward = backward_bytes(costs, layers, choice, policy, stage);
  buffers.weight_gradients =
      detail::weight_gradient_bytes(detail::gemms_of_stage(states, stage), policy);
  // Megatron-LM's GlobalMemoryBuffer gathers a GEMM's input, and its gradient has the same size
  // before it is scattered (arXiv 2205.05198, section 4.2.2).
  if (plan.sequence == SequenceParallel::on && plan.tensor > 1) {
    buffers.gathered_sequence = checked_multiply(2 * Integer{plan.tensor}, costs.hidden);
  }
  if (choice.zero == Zero::weights && detail::pipeline_copies(choice) * plan.replicas() > 1) {
    buffers.gathered_weights = checked_multiply(layers.largest_weights, kGatheredLayers);
  }
  return buffers;
}

PlanMemory training_memory(const RankCosts& costs, const RankStates& states,
                           const StageCosts& layers, const detail::HeldStates& held,
                           const PlanChoice& choice, const StatePolicy& policy,
                           const PipelineStage& stage, std::int64_t micro_batches) {
  const bool in_pipeline = stage.stage != Stage::whole;
  const StateBytes all = detail::stored_by_rank(held.all, choice);
  const StateBytes shown = in_pipeline ? detail::stored_by_rank(held.layers, choice) : all;
  PlanMemory memory;
  memory.stage = stage.stage;
  memory.stage_index = stage.index;
  memory.weights = shown.weights;
  memory.gradients = shown.gradients;
  memory.optimizer = shown.optimizer;
  memory.embedding_states = all.total() - shown.total();
  if (choice.step.offload == Offload::optimizer) {
    memory.embedding_states -= all.optimizer - shown.optimizer;
    memory.optimizer = 0;
  }
  const std::int64_t in_flight = chunks_in_flight(stage, choice, micro_batches);
  memory.activations = detail::kept_on_device(
      detail::saved_by_layers(layers, choice, stage, in_flight), choice, stage);
  memory.embedding_and_loss =
      costs.tables + checked_multiply(outside_activations(costs, choice, stage),
                                      micro_batches_in_flight(stage, choice, micro_batches));
  memory.buffers = training_buffers(costs, states, layers, choice, policy, stage);
  return memory;
}

/// FLOPs of the model for one micro-batch, on one rank of every stage.
double model_flops(const RankCosts& costs) {
  double flops = 0;
  for (const SectionCosts& section : costs.outside) flops += section.model_flops;
  for (const SectionCosts& kind : costs.layers) flops += kind.model_flops;
  return flops;
}

/// Seconds of one micro-batch through the layers of all stages in turn.
double all_layers_seconds(const RankCosts& costs, const detail::StepPasses& passes) {
  double seconds = 0;
  for (const SectionCosts& kind : costs.layers)
    seconds += detail::layers_time(kind, passes).total();
  return seconds;
}

/// Maxima over the stages; each may come from another stage.
struct WorstStage {
  PlanMemory memory;
  MicroBatchTime slowest;
  double layers_s = 0;      ///< of the slowest stage
  std::int64_t layers = 1;  ///< of the slowest stage
  SectionStates states;     ///< the ones with the most weights

  void add(const PipelineStage& stage, const PlanMemory& stage_memory, const MicroBatchTime& time,
           const SectionStates& stage_states, double stage_layers_s) {
    if (stage_memory.total() > memory.total()) memory = stage_memory;
    const Integer weights = states.dense.weights + states.experts.weights;
    if (stage_states.dense.weights + stage_states.experts.weights > weights) states = stage_states;
    if (time.total() <= slowest.total()) return;
    slowest = time;
    layers_s = stage_layers_s;
    layers = stage.layers;
  }
};

WorstStage worst_stage(const RankCosts& costs, const RankStates& states,
                       const std::vector<detail::LayerKind>& kinds,
                       const std::vector<PipelineStage>& stages, const PlanChoice& choice,
                       const StatePolicy& policy, const detail::StepPasses& passes,
                       std::int64_t micro_batches) {
  WorstStage worst;
  for (const PipelineStage& stage : stages) {
    const StageCosts layers = stage_costs(costs, states, kinds, stage);
    const detail::HeldStates held =
        detail::held_states(costs, states, kinds, stages, stage, choice);
    worst.add(stage,
              training_memory(costs, states, layers, held, choice, policy, stage, micro_batches),
              detail::stage_time(costs, layers, choice, passes, stage), held.all,
              detail::layers_time(layers.layers, passes).total());
  }
  return worst;
}

/// The bubble over that of 1F1B. A backward pass is half weight gradients, which zero-bubble
/// schedules delay: (p − 1)·(F + B − 2W) in place of (p − 1)·(F + B), and (p/2 − 1)·(F + 2B − 3W)
/// for DualPipe, with B the whole backward pass (arXiv 2412.19437, Table 2).
double bubble_fraction(const PlanChoice& choice, const MicroBatchTime& stage) {
  const double forward = stage.forward_s;
  const double backward = stage.backward_s;
  const double weight = backward / 2;
  const auto p = static_cast<double>(choice.parallel.pipeline);
  switch (choice.step.schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return 1;
    case PipelineSchedule::zero_bubble:
      return (forward + backward - 2 * weight) / (forward + backward);
    case PipelineSchedule::dual_pipe:
      break;
  }
  return (p / 2 - 1) / (p - 1) * (forward + 2 * backward - 3 * weight) / (forward + backward);
}

/// Communication of a micro-batch beyond its computation. DualPipe hides that of one direction
/// behind the computation of the other.
double exposed_communication(const PlanChoice& choice, const MicroBatchTime& stage) {
  const bool hides = choice.step.schedule == PipelineSchedule::dual_pipe;
  return hides ? std::max(0.0, stage.communication() - stage.compute()) : stage.communication();
}

}  // namespace

PlanFigures Planner::Implementation::training(const PlanChoice& choice, const Load& load) {
  const ParallelPlan& plan = choice.parallel;
  const std::int64_t m = micro_batches(choice, load);
  const RankCosts& costs =
      this->costs(Pass::train, plan,
                  with_tower_inputs(workload_of(Pass::train, choice.micro_batch, load.seq_len, 0)));
  const detail::StepPasses how = detail::passes_of(choice, query.states, rates);
  const bool pairs = detail::pipeline_copies(choice) > 1;
  const WorstStage worst =
      worst_stage(costs, states(plan), kinds, pairs ? all_stages(plan) : stages(plan), choice,
                  query.states, how, m);
  PlanFigures figures;
  figures.memory = worst.memory;
  figures.memory.runtime = detail::runtime_bytes(figures.memory, plan, query, rates);

  const auto passes = static_cast<double>(m);
  PlanTime& time = figures.time;
  time.compute_s = passes * worst.slowest.compute();
  time.communication_s = passes * exposed_communication(choice, worst.slowest);
  time.host_copies_s = passes * worst.slowest.copies();
  if (plan.pipeline > 1) {
    const auto v = static_cast<double>(plan.interleave);
    // Before its first and after its last micro-batch the slowest stage waits for the layers of the
    // others: p − 1 times its own if all are equal.
    time.bubble_s = (all_layers_seconds(costs, how) - worst.layers_s) / v *
                    bubble_fraction(choice, worst.slowest);
    time.communication_s += 2 * passes * v * send_seconds(choice, costs.hidden);
    std::int64_t choices = 0;  // of the stage that sends the most, which the others wait for
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage)
      choices = std::max(choices, choices_sent(plan, stage));
    if (choices > 0) {
      time.communication_s +=
          passes * static_cast<double>(choices) * send_seconds(choice, costs.key_choice);
    }
  }
  for (const auto& call : detail::data_parallel_collectives(worst.states, choice, passes)) {
    time.communication_s += detail::exposed_seconds(call, data_parallel_seconds(call), choice,
                                                    worst.slowest, worst.layers);
  }
  time.optimizer_s = detail::optimizer_seconds(worst.states, choice, rates);
  time.iteration_s =
      time.compute_s + time.communication_s + time.host_copies_s + time.bubble_s + time.optimizer_s;
  const auto tokens = static_cast<double>(load.batch_size) * static_cast<double>(load.seq_len);
  time.tokens_per_s = tokens / time.iteration_s;
  // model_flops() counts one rank of every stage; on average a rank runs 1/p of them. A batch that
  // does not fill the micro-batches of all replicas is less work than they run.
  const double filled =
      static_cast<double>(load.batch_size) / static_cast<double>(sequences_run(choice, load));
  time.mfu = model_flops(costs) * passes * filled / static_cast<double>(plan.pipeline) /
             (rates.flops_per_s * time.iteration_s);
  return figures;
}

}  // namespace headroom
