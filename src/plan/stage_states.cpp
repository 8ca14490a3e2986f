#include "stage_states.h"

#include <algorithm>

namespace headroom::detail {
namespace {

Integer fraction_of_bytes(Integer bytes, Integer part, Integer whole) {
  return part == whole ? bytes : ceil_div(checked_multiply(bytes, part), whole);
}

void add_layers(const SectionCosts& kind, std::int64_t layers, std::int64_t all_layers,
                SectionCosts& sum) {
  const double fraction = static_cast<double>(layers) / static_cast<double>(all_layers);
  sum.forward_s += fraction * kind.forward_s;
  sum.backward_s += fraction * kind.backward_s;
  for (std::size_t i = 0; i < kLayerParts; ++i) {
    sum.part_s[i] += fraction * kind.part_s[i];
    sum.part_communication_s[i] += fraction * kind.part_communication_s[i];
    sum.part_hidden_s[i] += fraction * kind.part_hidden_s[i];
    sum.saved_parts[i] += fraction_of_bytes(kind.saved_parts[i], layers, all_layers);
  }
  sum.forward_communication_s += fraction * kind.forward_communication_s;
  sum.backward_communication_s += fraction * kind.backward_communication_s;
  sum.forward_hidden_s += fraction * kind.forward_hidden_s;
  sum.backward_hidden_s += fraction * kind.backward_hidden_s;
  sum.model_flops += fraction * kind.model_flops;
  sum.saved += fraction_of_bytes(kind.saved, layers, all_layers);
  sum.layer_inputs += fraction_of_bytes(kind.layer_inputs, layers, all_layers);
}

Integer weights_of(const SectionStates& states) {
  return states.dense.weights + states.experts.weights;
}

/// Adds `layers` equal layers of `all_layers`.
void add_equal_layers(const SectionStates& kind, std::int64_t layers, std::int64_t all_layers,
                      StageCosts& sum) {
  sum.states.dense += fraction_of(kind.dense, layers, all_layers);
  if (kind.experts.weights > 0) {
    sum.states.experts += fraction_of(kind.experts, layers, all_layers);
  }
  sum.largest_weights = std::max(sum.largest_weights, ceil_div(weights_of(kind), all_layers));
}

void add_single_layers(const std::vector<SectionStates>& layers,
                       const std::vector<LayerRange>& ranges, StageCosts& sum) {
  for (const LayerRange& range : ranges) {
    for (std::int64_t index = range.begin; index < range.end; ++index) {
      const SectionStates& layer = layers.at(static_cast<std::size_t>(index));
      sum.states.dense += layer.dense;
      sum.states.experts += layer.experts;
      sum.largest_weights = std::max(sum.largest_weights, weights_of(layer));
    }
  }
}

}  // namespace

StateBytes fraction_of(const StateBytes& states, Integer part, Integer whole) {
  return {fraction_of_bytes(states.weights, part, whole),
          fraction_of_bytes(states.gradients, part, whole),
          fraction_of_bytes(states.optimizer, part, whole),
          fraction_of_bytes(states.copies, part, whole)};
}

StageCosts stage_costs(const RankCosts& costs, const RankStates& states,
                       const std::vector<LayerKind>& kinds, const PipelineStage& stage) {
  StageCosts result;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::int64_t layers = stage.layers_of_kind[i];
    if (layers == 0) continue;
    const SectionCosts& kind = costs.layers[i];
    const std::int64_t all_layers = kinds[i].count;
    add_layers(kind, layers, all_layers, result.layers);
    if (states.single_layers[i].empty()) {
      add_equal_layers(states.layers[i], layers, all_layers, result);
    } else {
      add_single_layers(states.single_layers[i], stage.ranges_of_kind[i], result);
    }
    result.largest_saved = std::max(result.largest_saved, ceil_div(kind.saved, all_layers));
    for (std::size_t part = 0; part < kLayerParts; ++part) {
      result.largest_parts[part] =
          std::max(result.largest_parts[part], ceil_div(kind.saved_parts[part], all_layers));
    }
    result.largest_gradients = std::max(result.largest_gradients, kind.largest_gradients);
  }
  return result;
}

std::vector<GemmShape> gemms_of_stage(const RankStates& states, const PipelineStage& stage) {
  std::vector<GemmShape> shapes;
  for (std::size_t i = 0; i < states.gemms.size(); ++i) {
    if (stage.layers_of_kind[i] == 0) continue;
    shapes.insert(shapes.end(), states.gemms[i].begin(), states.gemms[i].end());
  }
  keep_distinct(shapes);
  return shapes;
}

SectionStates all_states(const StageCosts& costs, const RankStates& states,
                         const PipelineStage& stage) {
  SectionStates all = costs.states;
  for (const OutsideStates& outside : states.outside) {
    if ((outside.used_by & stage.sections) != 0) all.dense += outside.states;
  }
  return all;
}

HeldStates held_states(const RankCosts& costs, const RankStates& states,
                       const std::vector<LayerKind>& kinds,
                       const std::vector<PipelineStage>& stages, const PipelineStage& stage,
                       const PlanChoice& choice) {
  HeldStates held;
  const auto add = [&](const PipelineStage& one) {
    const StageCosts layers = stage_costs(costs, states, kinds, one);
    const SectionStates all = all_states(layers, states, one);
    held.all.dense += all.dense;
    held.all.experts += all.experts;
    held.layers.dense += layers.states.dense;
    held.layers.experts += layers.states.experts;
  };
  add(stage);
  if (pipeline_copies(choice) > 1)
    add(stages[stages.size() - 1 - static_cast<std::size_t>(stage.index)]);
  return held;
}

std::int64_t pipeline_copies(const PlanChoice& choice) noexcept {
  return choice.step.schedule == PipelineSchedule::dual_pipe ? 2 : 1;
}

std::int64_t zero_ranks(const PlanChoice& choice, std::int64_t copies) noexcept {
  if (choice.step.zero_ranks == 0) return copies;
  const std::int64_t shards = copies * choice.step.zero_ranks / choice.parallel.replicas();
  return std::max<std::int64_t>(1, shards);
}

StateBytes stored_by_rank(const SectionStates& states, const PlanChoice& choice) {
  const ParallelPlan& plan = choice.parallel;
  const std::int64_t pair = pipeline_copies(choice);
  StateBytes stored =
      zero_sharded(states.dense, choice.zero, zero_ranks(choice, pair * plan.replicas()));
  if (states.experts.weights > 0) {
    const std::int64_t copies = pair * plan.expert_replicas() / plan.expert;
    stored += zero_sharded(states.experts, choice.zero, zero_ranks(choice, copies));
  }
  if (choice.zero == Zero::none) stored.optimizer = ceil_div(stored.optimizer, Integer{pair});
  return stored;
}

StateBytes updated_by_rank(const SectionStates& states, const PlanChoice& choice) {
  PlanChoice sharded = choice;
  if (choice.zero != Zero::none) sharded.zero = Zero::weights;
  StateBytes updated = stored_by_rank(states, sharded);
  if (choice.zero != Zero::none) return updated;
  const Integer pair = pipeline_copies(choice);
  updated.weights = ceil_div(updated.weights, pair);
  updated.copies = ceil_div(updated.copies, pair);
  updated.gradients = ceil_div(updated.gradients, pair);
  return updated;
}

}  // namespace headroom::detail
