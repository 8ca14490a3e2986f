// States (weights, gradients, optimizer) and costs of one pipeline stage. Internal to src/plan.
#pragma once

#include <vector>

#include "headroom/plan.h"
#include "rank_program.h"
#include "stage_layout.h"
#include "weight_gradients.h"

namespace headroom::detail {

/// States of dense weights, which all replicas store, and of routed experts, which fewer store.
struct SectionStates {
  StateBytes dense;
  StateBytes experts;
};

/// States outside the layers, by the sections that use them. A stage that runs any of these
/// sections stores a copy: a head tied to the embedding has its own on the last stage.
struct OutsideStates {
  SectionSet used_by = 0;
  StateBytes states;
};

/// States of one tensor and expert rank over all stages, before ZeRO.
struct RankStates {
  std::vector<SectionStates> layers;  ///< by kind
  /// By kind and layer of the kind; empty for kinds whose layers are all stored alike.
  std::vector<std::vector<SectionStates>> single_layers;
  std::vector<OutsideStates> outside;
  std::vector<std::vector<GemmShape>> gemms;  ///< distinct trained shapes, by kind
};

/// One stage of a pipeline.
struct PipelineStage {
  Stage stage = Stage::whole;
  std::int64_t index = 0;
  std::int64_t layers = 0;
  std::vector<std::int64_t> layers_of_kind;
  std::vector<std::vector<LayerRange>> ranges_of_kind;  ///< of indices within the kind
  SectionSet sections = kAllSections;
  std::vector<std::int64_t> decode_layers_of_kind{};  ///< by kind of a decode step's layers

  [[nodiscard]] bool runs(Section::Kind section) const noexcept {
    return (sections & bit_of(section)) != 0;
  }
};

/// Costs and states of the layers of one stage.
struct StageCosts {
  SectionCosts layers;
  SectionStates states;
  Integer largest_saved = 0;                         ///< of one layer, saved without recompute
  std::array<Integer, kLayerParts> largest_parts{};  ///< of one layer, by LayerPart
  Integer largest_weights = 0;                       ///< of one layer
  Integer largest_gradients = 0;                     ///< of activations, of one operator
};

/// Sums over the kinds of layers, each by the fraction of its layers in the stage; states over the
/// stage's own layers where these differ.
[[nodiscard]] StageCosts stage_costs(const RankCosts& costs, const RankStates& states,
                                     const std::vector<LayerKind>& kinds,
                                     const PipelineStage& stage);

/// Distinct shapes of the GEMMs of the stage's layers, in ascending order.
[[nodiscard]] std::vector<GemmShape> gemms_of_stage(const RankStates& states,
                                                    const PipelineStage& stage);

/// part/whole of `states`, rounded up.
[[nodiscard]] StateBytes fraction_of(const StateBytes& states, Integer part, Integer whole);

/// States of the stage's layers and of its sections outside the layers, before ZeRO.
[[nodiscard]] SectionStates all_states(const StageCosts& costs, const RankStates& states,
                                       const PipelineStage& stage);

/// States that a rank holds before ZeRO, in all and of layers alone: those of its stage and, with
/// DualPipe, of the stage as far from the pipeline's other end (arXiv 2412.19437, section 3.2.1).
struct HeldStates {
  SectionStates all;
  SectionStates layers;
};
/// `stages` are all of the pipeline, in order.
[[nodiscard]] HeldStates held_states(const RankCosts& costs, const RankStates& states,
                                     const std::vector<LayerKind>& kinds,
                                     const std::vector<PipelineStage>& stages,
                                     const PipelineStage& stage, const PlanChoice& choice);

/// Ranks of a replica that hold the same states: two with DualPipe, which share the optimizer's.
[[nodiscard]] std::int64_t pipeline_copies(const PlanChoice& choice) noexcept;

/// Ranks of `copies` with the same weights over which ZeRO shards states: those of a group of
/// zero_ranks replicas. Experts have fewer copies there, since --ep spreads them over replicas
/// (Megatron-LM's num_distributed_optimizer_instances divides both groups by the same number).
[[nodiscard]] std::int64_t zero_ranks(const PlanChoice& choice, std::int64_t copies) noexcept;

/// The bytes that one rank stores of the states that it holds under ZeRO.
[[nodiscard]] StateBytes stored_by_rank(const SectionStates& states, const PlanChoice& choice);

/// Those whose weights it updates: with ZeRO its shard.
[[nodiscard]] StateBytes updated_by_rank(const SectionStates& states, const PlanChoice& choice);

}  // namespace headroom::detail
