// Serving: weights, KV-cache and activations on the worst stage, for a prefill pass or a decode
// step; the time of a decode step through all stages.
#include <algorithm>
#include <optional>

#include "plan_memory.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::PipelineStage;
using detail::RankCosts;
using detail::RankStates;
using detail::SectionCosts;
using detail::StageCosts;

PlanMemory weight_memory(const RankStates& states, const PlanChoice& choice,
                         const StageCosts& costs, const PipelineStage& stage) {
  const StateBytes all = detail::stored_by_rank(detail::all_states(costs, states, stage), choice);
  const bool in_pipeline = stage.stage != Stage::whole;
  PlanMemory memory;
  memory.stage = stage.stage;
  memory.stage_index = stage.index;
  memory.weights = in_pipeline ? detail::stored_by_rank(costs.states, choice).weights : all.weights;
  memory.embedding_states = all.weights - memory.weights;
  return memory;
}

Integer cache_of_stage(const RankCosts& step, const std::vector<detail::LayerKind>& decode_kinds,
                       const PipelineStage& stage) {
  Integer bytes = 0;
  for (std::size_t i = 0; i < step.kv_cache.size(); ++i) {
    bytes += ceil_div(checked_multiply(step.kv_cache[i], stage.decode_layers_of_kind[i]),
                      decode_kinds[i].count);
  }
  return bytes;
}

/// Weights and KV-cache of the stage with the most of both.
PlanMemory worst_weights_and_cache(const RankCosts& prefill, const std::optional<RankCosts>& step,
                                   const RankStates& states, const PlannerSetup& setup,
                                   const std::vector<PipelineStage>& stages,
                                   const PlanChoice& choice) {
  PlanMemory worst;
  for (const PipelineStage& stage : stages) {
    const StageCosts costs = stage_costs(prefill, states, setup.kinds, stage);
    PlanMemory memory = weight_memory(states, choice, costs, stage);
    if (step) memory.kv_cache = cache_of_stage(*step, setup.decode_kinds, stage);
    if (memory.total() > worst.total()) worst = memory;
  }
  return worst;
}

/// Seconds of one pass through all stages, also added to `time` by what they go to.
double pass_seconds(const RankCosts& costs, PlanTime& time) {
  double seconds = 0;
  const auto add = [&](const SectionCosts& section) {
    time.compute_s += section.forward_s;
    time.compute_bound_s += section.compute_bound_s;
    time.roofline_s += section.roofline_s;
    time.communication_s += section.forward_communication_s;
    seconds += section.forward_s + section.forward_communication_s;
  };
  for (const SectionCosts& section : costs.outside) add(section);
  for (const SectionCosts& kind : costs.layers) add(kind);
  return seconds;
}

}  // namespace

std::vector<Integer> Planner::Implementation::reserved_cache(const RankCosts& step,
                                                             const Workload& workload,
                                                             std::int64_t stages) {
  if (!detail::needs_reservation(query.kv_cache)) return step.kv_cache;
  const auto key = std::tuple{workload.batch_size, workload.past_len, stages};
  auto known = reservations_.find(key);
  if (known == reservations_.end()) {
    KvCacheRequest request = query.kv_cache;
    request.pipeline_stages = stages;
    const detail::KvReservation whole =
        detail::kv_reservation(spec, *decode, workload, request, step.kv_cache.size());
    known = reservations_.emplace(key, whole).first;
  }
  return detail::reserved_on_rank(known->second, step.kv_cache);
}

PlanFigures Planner::Implementation::serving(const PlanChoice& choice, const Load& load) {
  const ParallelPlan& plan = choice.parallel;
  const std::int64_t batch = ceil_div(load.batch_size, plan.data);
  const bool cached = decode.has_value();
  // With a KV-cache a prompt is prefilled in chunks.
  const std::int64_t chunk = cached ? std::min(load.seq_len, query.prefill_tokens) : load.seq_len;
  Workload last_chunk = workload_of(Pass::prefill, cached ? 1 : batch, chunk, load.seq_len - chunk);
  if (!cached) last_chunk = with_tower_inputs(std::move(last_chunk));
  const auto costs_of = [&](Pass pass, const Workload& workload) {
    return serving_costs(pass, plan, workload, workload.batch_size);
  };
  const RankCosts prefill = costs_of(Pass::prefill, last_chunk);
  Integer peak = prefill.peak;
  std::optional<RankCosts> step;
  PlanFigures figures;
  PlanTime& time = figures.time;
  if (cached) {
    const Workload last = workload_of(Pass::decode, batch, 1, load.seq_len - 1);
    step = costs_of(Pass::decode, last);
    step->kv_cache = reserved_cache(*step, last, plan.pipeline);
    const Workload first_chunk = with_tower_inputs(workload_of(Pass::prefill, 1, chunk, 0));
    peak = std::max({peak, step->peak, costs(Pass::prefill, plan, first_chunk).peak});
    time.iteration_s = pass_seconds(*step, time);
    time.communication_s += sends_seconds(choice, *step);
    PlanTime prompt;
    const RankCosts whole =
        costs_of(Pass::prefill, with_tower_inputs(workload_of(Pass::prefill, 1, load.seq_len, 0)));
    time.ttft_s = pass_seconds(whole, prompt) + sends_seconds(choice, whole);
    time.tokens_per_s = static_cast<double>(load.batch_size);
  } else {
    time.iteration_s = pass_seconds(prefill, time);
    time.communication_s += sends_seconds(choice, prefill);
    time.tokens_per_s = static_cast<double>(load.batch_size) * static_cast<double>(load.seq_len);
  }
  time.iteration_s = time.compute_s + time.communication_s;
  time.tokens_per_s /= time.iteration_s;

  figures.memory =
      worst_weights_and_cache(prefill, step, states(plan), *this, stages(plan), choice);
  figures.memory.activations = peak;
  figures.memory.runtime = detail::runtime_bytes(figures.memory, plan, query, rates);
  return figures;
}

}  // namespace headroom
