// What a Planner holds: compiled programs, and costs that were evaluated before. Internal to
// src/plan.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "headroom/plan.h"
#include "rank_program.h"
#include "stage_layout.h"

namespace headroom {

/// States that one group of ranks shares out, and those of routed experts, which fewer ranks hold.
struct SectionStates {
  StateBytes shared;
  StateBytes experts;

  SectionStates& operator+=(const SectionStates& other) {
    shared += other.shared;
    experts += other.experts;
    return *this;
  }
};

/// States outside the layers that the same sections use. A stage that has any of them holds a copy:
/// a head that is tied to the embedding has its own on the last stage.
struct OutsideStates {
  detail::SectionSet used_by = 0;
  StateBytes states;
};

struct RankStates {
  std::vector<SectionStates> layers;  ///< by kind
  std::vector<OutsideStates> outside;
};

/// What one stage of a pipeline runs.
struct StageShare {
  Stage stage = Stage::whole;
  std::int64_t place = 0;
  std::int64_t layers = 0;
  std::vector<std::int64_t> layers_of_kind;
  detail::SectionSet sections = detail::kAllSections;

  [[nodiscard]] bool runs(detail::Section::Kind section) const noexcept {
    return (sections & detail::bit_of(section)) != 0;
  }
};

/// What of all layers a stage holds or does: a sum over kinds, each by its share of layers.
struct StageCosts {
  detail::SectionCosts layers;
  SectionStates states;
  Integer largest_saved = 0;    ///< of one layer, kept without recompute
  Integer largest_core = 0;     ///< of which selective recompute drops
  Integer largest_weights = 0;  ///< of one layer
};
[[nodiscard]] StageCosts stage_costs(const detail::RankCosts& costs, const RankStates& states,
                                     const std::vector<detail::LayerKind>& kinds,
                                     const StageShare& stage);

class Planner::Implementation {
 public:
  Implementation(const ModelSpec& spec, const PlanQuery& query, const DeviceRates& rates);
  Implementation(const Implementation& other, int /*fresh*/);

  PlanFigures evaluate(const PlanChoice& choice, const Load& load);
  std::vector<Communication> communication(const PlanChoice& choice, const Load& load);

  // training_step.cpp
  [[nodiscard]] PlanFigures training(const PlanChoice& choice, const Load& load);
  // serving_step.cpp
  [[nodiscard]] PlanFigures serving(const PlanChoice& choice, const Load& load);

  /// Which of the graphs a pass runs.
  enum class Pass { train, prefill, decode };
  /// One pass of one rank: `workload.batch_size` sequences.
  const detail::RankCosts& costs(Pass pass, const ParallelPlan& plan, const Workload& workload);
  const RankStates& states(const ParallelPlan& plan);
  /// The stages of which one is the worst: without those that an earlier one does all of.
  const std::vector<StageShare>& stages(const ParallelPlan& plan);
  [[nodiscard]] double send_seconds(const PlanChoice& choice, Integer hidden) const;
  [[nodiscard]] double rate_among(std::int64_t span) const noexcept;
  [[nodiscard]] Workload workload_of(Pass pass, std::int64_t batch, std::int64_t seq_len,
                                     std::int64_t past_len) const;
  [[nodiscard]] detail::RankSpeed speed_of(const ParallelPlan& plan) const;
  [[nodiscard]] SymbolValues values_of(const ParallelPlan& plan, const Workload& workload) const;
  detail::RankProgram& program(Pass pass, const ParallelPlan& plan);

  ModelSpec spec;
  PlanQuery query;
  DeviceRates rates;
  Graph graph;                  ///< the one that memory of weights is counted on
  std::optional<Graph> decode;  ///< serving a model with a KV-cache
  std::vector<detail::LayerKind> kinds;

 private:
  /// What a pass's costs depend on.
  struct CostKey {
    Pass pass;
    std::int64_t tensor;
    std::int64_t context;
    std::int64_t expert;
    SequenceParallel sequence;
    std::int64_t batch;
    std::int64_t seq_len;
    std::int64_t past_len;
    bool operator==(const CostKey&) const = default;
  };
  struct CostKeyHash {
    std::size_t operator()(const CostKey& key) const noexcept;
  };
  struct CompiledStructure {
    Pass pass;
    detail::Structure structure;
    std::unique_ptr<detail::RankProgram> program;
  };

  void require_planned() const;
  StateBytes serving_states(const Weight& weight, const Bindings& sizes) const;
  StateBytes states_of(const Weight& weight, const Bindings& sizes) const;

  std::vector<CompiledStructure> programs_;
  std::unordered_map<CostKey, detail::RankCosts, CostKeyHash> costs_;
  CostKey last_key_{};
  const detail::RankCosts* last_costs_ = nullptr;
  std::map<std::pair<std::int64_t, std::int64_t>, RankStates> states_;  ///< by tensor, expert
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<StageShare>>
      stages_;  ///< by pipeline, interleave
};

}  // namespace headroom
