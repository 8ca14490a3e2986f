// Serving: weights, KV-cache and the activations of a pass over a prompt or of a decode step on the
// worst stage; the time of a decode step through all stages.
#include <algorithm>
#include <optional>

#include "data_exchange.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::RankCosts;
using detail::SectionCosts;

PlanMemory stage_memory(const RankStates& states, const PlanChoice& choice, const StageCosts& own,
                        const StageShare& stage) {
  const StateBytes all = detail::held_by_rank(detail::all_states(own, states, stage), choice);
  const bool apart = stage.stage != Stage::whole;
  PlanMemory memory;
  memory.stage = stage.stage;
  memory.place = stage.place;
  memory.weights = apart ? detail::held_by_rank(own.states, choice).weights : all.weights;
  memory.embedding_states = all.weights - memory.weights;
  return memory;
}

Integer cache_of_stage(const RankCosts& step, const std::vector<detail::LayerKind>& kinds,
                       const StageShare& stage) {
  // A decode step runs no encoder, whose layers stand before the decoder's.
  const std::size_t encoder_kinds = kinds.size() - step.kv_cache.size();
  Integer bytes = 0;
  for (std::size_t i = 0; i < step.kv_cache.size(); ++i) {
    const std::size_t kind = encoder_kinds + i;
    bytes +=
        ceil_div(checked_multiply(step.kv_cache[i], stage.layers_of_kind[kind]), kinds[kind].count);
  }
  return bytes;
}

/// Seconds of one pass through all stages.
double pass_seconds(const RankCosts& costs, PlanTime& time) {
  double seconds = 0;
  const auto add = [&](const SectionCosts& section) {
    time.compute_s += section.forward_s;
    time.communication_s += section.forward_exchange_s;
    seconds += section.forward_s + section.forward_exchange_s;
  };
  for (const SectionCosts& section : costs.outside) add(section);
  for (const SectionCosts& kind : costs.layers) add(kind);
  return seconds;
}

}  // namespace

PlanFigures Planner::Implementation::serving(const PlanChoice& choice, const Load& load) {
  const ParallelPlan& plan = choice.parallel;
  const std::int64_t batch = ceil_div(load.batch_size, plan.data);
  const bool cached = decode.has_value();
  // A prompt is read in pieces where a KV-cache keeps what was read.
  const std::int64_t piece = cached ? std::min(load.seq_len, query.prefill_tokens) : load.seq_len;
  const RankCosts prefill =
      costs(Pass::prefill, plan,
            workload_of(Pass::prefill, cached ? 1 : batch, piece, load.seq_len - piece));
  Integer peak = prefill.peak;
  std::optional<RankCosts> step;
  const double sends = static_cast<double>(plan.pipeline - 1);
  PlanFigures figures;
  PlanTime& time = figures.time;
  if (cached) {
    step = costs(Pass::decode, plan, workload_of(Pass::decode, batch, 1, load.seq_len - 1));
    peak = std::max(peak, step->peak);
    time.iteration_s = pass_seconds(*step, time);
    time.communication_s += sends * send_seconds(choice, step->hidden);
    PlanTime prompt;
    const RankCosts whole =
        costs(Pass::prefill, plan, workload_of(Pass::prefill, 1, load.seq_len, 0));
    time.ttft_s = pass_seconds(whole, prompt) + sends * send_seconds(choice, whole.hidden);
    time.tokens_per_s = static_cast<double>(load.batch_size);
  } else {
    time.iteration_s = pass_seconds(prefill, time);
    time.communication_s += sends * send_seconds(choice, prefill.hidden);
    time.tokens_per_s = static_cast<double>(load.batch_size) * static_cast<double>(load.seq_len);
  }
  time.iteration_s = time.compute_s + time.communication_s;
  time.tokens_per_s /= time.iteration_s;

  const RankStates& states = this->states(plan);
  for (const StageShare& stage : stages(plan)) {
    const StageCosts own = stage_costs(prefill, states, kinds, stage);
    PlanMemory memory = stage_memory(states, choice, own, stage);
    if (step) memory.kv_cache = cache_of_stage(*step, kinds, stage);
    if (memory.total() > figures.memory.total()) figures.memory = memory;
  }
  figures.memory.activations = peak;
  figures.memory.overhead = query.overhead_bytes;
  return figures;
}

}  // namespace headroom
