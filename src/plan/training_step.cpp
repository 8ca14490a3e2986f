// One step of training: memory of the pipeline's stages, of which one is the worst, and the time of
// all micro-batches through all stages.
#include <algorithm>

#include "data_exchange.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::RankCosts;
using detail::Section;
using detail::SectionCosts;

/// Micro-batches times model chunks whose activations a stage holds at once: 1F1B holds as many as
/// there are stages from this one on; interleaved, rank i holds 2·(p − i − 1) + (v − 1)·p + 1
/// chunks (arXiv 2104.04473, section 2.2; 2205.05198, section 4.2.3).
std::int64_t chunks_in_flight(const StageShare& stage, const ParallelPlan& plan,
                              std::int64_t micro_batches) {
  if (plan.pipeline == 1) return 1;
  const std::int64_t p = plan.pipeline;
  const std::int64_t v = plan.interleave;
  const std::int64_t behind = p - stage.place;
  const std::int64_t chunks = v == 1 ? behind : 2 * (behind - 1) + (v - 1) * p + 1;
  return std::min(chunks, v * micro_batches);
}

/// The same of what runs once for each micro-batch: embeddings, norms, the head.
std::int64_t passes_in_flight(const StageShare& stage, const ParallelPlan& plan,
                              std::int64_t micro_batches) {
  if (plan.pipeline == 1) return 1;
  const std::int64_t behind = plan.pipeline - stage.place;
  return std::min(plan.interleave == 1 ? behind : 2 * behind - 1, micro_batches);
}

/// What stands outside the layers and is kept for the backward passes.
Integer outside_activations(const RankCosts& costs, const StageShare& stage) {
  Integer bytes = 0;
  for (std::size_t i = 0; i < costs.outside.size(); ++i) {
    if (stage.runs(static_cast<Section::Kind>(i))) bytes += costs.outside[i].saved;
  }
  return bytes;
}

/// What the stage's layers keep for the backward passes of all chunks in flight.
Integer layer_activations(const StageCosts& costs, const PlanChoice& choice,
                          const StageShare& stage, std::int64_t in_flight) {
  const std::int64_t v = choice.parallel.interleave;
  switch (choice.recompute.kind) {
    case Recompute::none:
      return ceil_div(checked_multiply(costs.layers.saved, in_flight), v);
    case Recompute::selective:
      return ceil_div(checked_multiply(costs.layers.saved - costs.layers.saved_core, in_flight), v);
    case Recompute::full:
      break;
  }
  const std::int64_t chunk_layers = ceil_div(stage.layers, v);
  const Integer kept = ceil_div(chunk_layers, choice.recompute.every);
  return ceil_div(checked_multiply(costs.layers.layer_inputs, checked_multiply(kept, in_flight)),
                  stage.layers);
}

/// What is computed again, of one micro-batch, while its backward pass needs it.
Integer recomputed_bytes(const StageCosts& costs, const Recomputation& recompute,
                         const StageShare& stage) {
  switch (recompute.kind) {
    case Recompute::none:
      return 0;
    case Recompute::selective:
      return costs.largest_core;
    case Recompute::full:
      break;
  }
  return checked_multiply(costs.largest_saved, std::min(recompute.every, stage.layers));
}

/// Layers whose weights ZeRO-3 holds in full at once: the one that runs and the one that comes
/// next.
constexpr Integer kGatheredLayers = 2;

PlanMemory stage_memory(const RankCosts& costs, const RankStates& states, const StageCosts& own,
                        const PlanChoice& choice, const StageShare& stage,
                        std::int64_t micro_batches) {
  const ParallelPlan& plan = choice.parallel;
  const bool apart = stage.stage != Stage::whole;
  const StateBytes all = detail::held_by_rank(detail::all_states(own, states, stage), choice);
  const StateBytes held = apart ? detail::held_by_rank(own.states, choice) : all;
  PlanMemory memory;
  memory.stage = stage.stage;
  memory.place = stage.place;
  memory.weights = held.weights;
  memory.gradients = held.gradients;
  memory.optimizer = held.optimizer;
  memory.embedding_states = all.total() - held.total();
  memory.activations =
      layer_activations(own, choice, stage, chunks_in_flight(stage, plan, micro_batches));
  memory.embedding_and_loss =
      costs.tables + checked_multiply(outside_activations(costs, stage),
                                      passes_in_flight(stage, plan, micro_batches));
  // The logits and their gradient.
  const Integer logits = stage.runs(Section::Kind::main_last) ? 2 * costs.logits : 0;
  memory.buffers = std::max(logits, recomputed_bytes(own, choice.recompute, stage));
  if (choice.zero == Zero::weights && plan.replicas() > 1) {
    memory.buffers += checked_multiply(own.largest_weights, kGatheredLayers);
  }
  return memory;
}

/// Seconds of one micro-batch on one stage.
struct StageTime {
  double forward_s = 0;
  double backward_s = 0;  ///< recomputation included
  double exchange_s = 0;
  [[nodiscard]] double compute() const { return forward_s + backward_s; }
  [[nodiscard]] double total() const { return compute() + exchange_s; }
};

void add_section(const SectionCosts& costs, StageTime& time) {
  time.forward_s += costs.forward_s;
  time.backward_s += costs.backward_s;
  time.exchange_s += costs.forward_exchange_s + costs.backward_exchange_s;
}

StageTime layers_time(const SectionCosts& layers, const Recomputation& recompute) {
  StageTime time;
  add_section(layers, time);
  switch (recompute.kind) {
    case Recompute::none:
      break;
    case Recompute::selective:
      time.backward_s += layers.core_s;
      break;
    case Recompute::full:
      time.backward_s += layers.forward_s;
      time.exchange_s += layers.forward_exchange_s;
      break;
  }
  return time;
}

StageTime stage_time(const RankCosts& costs, const StageCosts& own, const Recomputation& recompute,
                     const StageShare& stage) {
  StageTime time = layers_time(own.layers, recompute);
  for (std::size_t i = 0; i < costs.outside.size(); ++i) {
    if (stage.runs(static_cast<Section::Kind>(i))) add_section(costs.outside[i], time);
  }
  return time;
}

double all_forward_flops(const RankCosts& costs) {
  double flops = 0;
  for (const SectionCosts& section : costs.outside) flops += section.forward_flops;
  for (const SectionCosts& block : costs.layers) flops += block.forward_flops;
  return flops;
}

/// Seconds of one micro-batch through the layers of all stages, one after the other.
double all_layers_seconds(const RankCosts& costs, const Recomputation& recompute) {
  double seconds = 0;
  for (const SectionCosts& block : costs.layers) seconds += layers_time(block, recompute).total();
  return seconds;
}

/// The stages' worst: its memory, and the time that paces the pipeline.
struct Worst {
  PlanMemory memory;
  StageTime slowest;
  double layers_s = 0;  ///< of the slowest stage
  SectionStates states;
  std::int64_t layers = 1;
};

}  // namespace

PlanFigures Planner::Implementation::training(const PlanChoice& choice, const Load& load) {
  const ParallelPlan& plan = choice.parallel;
  const std::int64_t m = micro_batches(choice, load);
  const RankCosts& costs =
      this->costs(Pass::train, plan, workload_of(Pass::train, choice.micro_batch, load.seq_len, 0));
  const RankStates& states = this->states(plan);
  Worst worst;
  for (const StageShare& stage : stages(plan)) {
    const StageCosts own = stage_costs(costs, states, kinds, stage);
    const PlanMemory memory = stage_memory(costs, states, own, choice, stage, m);
    const StageTime time = stage_time(costs, own, choice.recompute, stage);
    if (memory.total() > worst.memory.total()) worst.memory = memory;
    const SectionStates all = detail::all_states(own, states, stage);
    if (all.shared.weights + all.experts.weights >
        worst.states.shared.weights + worst.states.experts.weights) {
      worst.states = all;
    }
    if (time.total() <= worst.slowest.total()) continue;
    worst.slowest = time;
    worst.layers_s = layers_time(own.layers, choice.recompute).total();
    worst.layers = stage.layers;
  }
  PlanFigures figures;
  figures.memory = worst.memory;
  figures.memory.overhead = query.overhead_bytes;

  const auto passes = static_cast<double>(m);
  PlanTime& time = figures.time;
  time.compute_s = passes * worst.slowest.compute();
  time.communication_s = passes * worst.slowest.exchange_s;
  if (plan.pipeline > 1) {
    const auto v = static_cast<double>(plan.interleave);
    // Until its first micro-batch comes, and after its last one goes, the slowest stage waits for
    // the others' layers: p − 1 times its own where all are equal.
    time.bubble_s = (all_layers_seconds(costs, choice.recompute) - worst.layers_s) / v;
    time.communication_s += 2 * passes * v * send_seconds(choice, costs.hidden);
  }
  for (const detail::DataExchange& exchange :
       detail::data_exchanges(worst.states, choice, passes)) {
    const double seconds = wire_bytes(exchange.kind, exchange.bytes, exchange.ranks) /
                               rate_among(plan.tensor * plan.replicas()) +
                           rates.exchange_latency_s;
    // Exchanged layer by layer beside a pass; what is left of it, and the last layer, shows.
    const double hidden = exchange.backward ? worst.slowest.backward_s : worst.slowest.forward_s;
    time.communication_s +=
        exchange.times * std::max(seconds / static_cast<double>(worst.layers), seconds - hidden);
  }
  const StateBytes updated = detail::held_by_rank(worst.states, choice);
  // Each state is read and written, gradients are read, weights written.
  time.optimizer_s =
      static_cast<double>(2 * updated.optimizer + updated.gradients + updated.weights) /
      (rates.memory_bytes_per_s * rates.efficiency.memory);
  time.iteration_s = time.compute_s + time.communication_s + time.bubble_s + time.optimizer_s;
  const auto tokens = static_cast<double>(load.batch_size) * static_cast<double>(load.seq_len);
  time.tokens_per_s = tokens / time.iteration_s;
  // Each rank of the replicas that share a stage does its part, once for each micro-batch.
  time.mfu = 3 * all_forward_flops(costs) * passes / static_cast<double>(plan.pipeline) /
             (rates.flops_per_s * time.iteration_s);
  return figures;
}

}  // namespace headroom
