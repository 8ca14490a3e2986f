// The planner's implementation: compiled programs, and caches of costs and states. Internal to
// src/plan.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data_parallel_communication.h"
#include "headroom/plan.h"
#include "headroom/timeline.h"
#include "kv_reservation.h"
#include "rank_program.h"
#include "stage_layout.h"
#include "stage_states.h"

namespace headroom {

/// The planner's input, and the graphs built from it.
struct PlannerSetup {
  ModelSpec spec;
  PlanQuery query;
  DeviceRates rates;
  Graph graph;                  ///< training or prefill; its weights are the ones counted
  std::optional<Graph> decode;  ///< serving a model with a KV-cache
  std::vector<detail::LayerKind> kinds;
  std::vector<detail::LayerKind> decode_kinds;  ///< of `decode`
  std::vector<std::int64_t> choosing_layers;    ///< read keys that an indexer before them chose
  WorkloadImages images;                        ///< of one sequence; without `grids`
  WorkloadAudio audio;                          ///< of one sequence
};

namespace detail {

/// The users of a weight: layers of one kind, perhaps as a routed expert, or sections outside the
/// layers.
struct WeightUse {
  std::optional<std::size_t> layer_kind;
  bool expert = false;
  SectionSet outside = 0;
};

/// Bytes of hidden states that one rank sends to the next stage. Without sequence parallelism all
/// ranks of a tensor group have equal states, and each sends a fraction (arXiv 2104.04473, section
/// 4.1).
[[nodiscard]] double sent_by_rank(double hidden_bytes, const ParallelPlan& plan);

/// A workload of the query's types and attention, without sizes.
[[nodiscard]] Workload workload_of(const PlanQuery& query, Phase phase);

}  // namespace detail

class Planner::Implementation : public PlannerSetup {
 public:
  explicit Implementation(PlannerSetup setup) : PlannerSetup(std::move(setup)) {}

  PlanFigures evaluate(const PlanChoice& choice, const Load& load);
  [[nodiscard]] double time_range(const PlanChoice& choice, double compute_share) const;
  void replace_rates(const DeviceRates& replacement);
  std::vector<Communication> communication(const PlanChoice& choice, const Load& load);
  std::vector<Integer> stage_weights(const PlanChoice& choice);

  // training_step.cpp
  [[nodiscard]] PlanFigures training(const PlanChoice& choice, const Load& load);
  // step_times.cpp
  [[nodiscard]] StepTimes step_times(const PlanChoice& choice, const Load& load);
  // serving_step.cpp
  [[nodiscard]] PlanFigures serving(const PlanChoice& choice, const Load& load);
  // pass_time.cpp
  [[nodiscard]] PassTime prefill_time(const PlanChoice& choice, std::int64_t tokens,
                                      std::int64_t past_len, std::int64_t adapters);
  [[nodiscard]] PassTime decode_time(const PlanChoice& choice, std::int64_t sequences,
                                     std::int64_t past_len);

  /// The kind of pass that a graph is compiled for.
  enum class Pass { train, prefill, decode };
  /// Costs of one pass over `workload.batch_size` sequences on one rank, which use an adapter each,
  /// or `adapters` of them.
  const detail::RankCosts& costs(Pass pass, const ParallelPlan& plan, const Workload& workload);
  const detail::RankCosts& costs(Pass pass, const ParallelPlan& plan, const Workload& workload,
                                 std::int64_t adapters);
  /// Costs of a serving pass; with overlap, of the two batches that it runs as. The reference is
  /// valid until the next call.
  const detail::RankCosts& serving_costs(Pass pass, const ParallelPlan& plan,
                                         const Workload& workload, std::int64_t adapters);
  const detail::RankStates& states(const ParallelPlan& plan);
  /// The stages that can be the worst: leaves out a stage if an earlier one runs all of its parts.
  const std::vector<detail::PipelineStage>& stages(const ParallelPlan& plan);
  /// Seconds to send the hidden states of one micro-batch, or other bytes, to the next stage.
  [[nodiscard]] double send_seconds(const PlanChoice& choice, Integer bytes) const;
  /// By model chunk of a stage, true if it sends on the keys that an indexer chose; empty if no
  /// chunk of any stage does.
  [[nodiscard]] std::vector<bool> chunks_with_choice(const ParallelPlan& plan,
                                                     std::int64_t stage) const;
  /// Choices of keys that a stage sends on in a forward pass.
  [[nodiscard]] std::int64_t choices_sent(const ParallelPlan& plan, std::int64_t stage) const;
  /// Seconds that a serving pass takes between the stages.
  [[nodiscard]] double sends_seconds(const PlanChoice& choice, const detail::RankCosts& pass) const;
  /// Seconds of one data-parallel collective, before any overlap.
  [[nodiscard]] double data_parallel_seconds(const detail::DataParallelCollective& call) const;
  /// Bytes per second that each of `ranks` sends in a collective, of which neighbours are `apart`
  /// devices apart. Rings between nodes use the ports of all ranks of a node.
  [[nodiscard]] double rate_among(std::int64_t ranks, std::int64_t apart) const noexcept;
  /// Bytes per second from a device to the one `apart` devices on.
  [[nodiscard]] double send_rate(std::int64_t apart) const noexcept;
  [[nodiscard]] Workload workload_of(Pass pass, std::int64_t batch, std::int64_t seq_len,
                                     std::int64_t past_len) const;
  /// `workload` with the images and the sound of its sequences.
  [[nodiscard]] Workload with_tower_inputs(Workload workload) const;
  /// Collectives of one pass of a rank; the layers' are those of both batches, if there are two.
  std::vector<detail::RankProgram::RepeatedCollective> pass_collectives(Pass pass,
                                                                        const ParallelPlan& plan,
                                                                        const Workload& workload);
  [[nodiscard]] detail::RankSpeed speed_of(const ParallelPlan& plan) const;
  [[nodiscard]] detail::ExpertLinks expert_links(const ParallelPlan& plan) const noexcept;
  [[nodiscard]] SymbolValues values_of(const ParallelPlan& plan, const Workload& workload) const;
  detail::RankProgram& program(Pass pass, const ParallelPlan& plan);
  /// The KV-cache of a step by kind, as the query's policy reserves it.
  std::vector<Integer> reserved_cache(const detail::RankCosts& step, const Workload& workload,
                                      std::int64_t stages);

 private:
  /// Everything that the costs of a pass depend on.
  struct CostKey {
    Pass pass;
    std::int64_t tensor;
    std::int64_t context;
    std::int64_t expert;
    ExpertTensor expert_tensor;
    ExpertExchange expert_exchange;
    BatchOverlap batch_overlap;
    SequenceParallel sequence;
    std::int64_t batch;
    std::int64_t seq_len;
    std::int64_t past_len;
    std::int64_t images;
    std::int64_t audio_segments;
    std::int64_t adapters;
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

  /// A rank's share of the elements of `weight` in its stored bytes, rounded up.
  StateBytes serving_states(const Weight& weight, const Bindings& sizes) const;
  StateBytes states_of(const Weight& weight, const Bindings& sizes) const;
  /// Likewise of one copy.
  StateBytes copy_states(const Weight& weight, std::size_t copy, const Bindings& sizes) const;
  /// States by kind and layer where layers differ, with routed experts on `ranks` expert ranks.
  [[nodiscard]] std::vector<std::vector<detail::SectionStates>> single_layers(
      const Graph& source, const std::vector<detail::WeightUse>& uses, const Bindings& sizes,
      std::int64_t ranks) const;
  [[nodiscard]] std::vector<detail::PipelineStage> all_stages(const ParallelPlan& plan) const;

  std::vector<CompiledStructure> programs_;
  std::unordered_map<CostKey, detail::RankCosts, CostKeyHash> costs_;
  detail::RankCosts overlapped_;  ///< of the last pass in two batches
  CostKey last_key_{};
  const detail::RankCosts* last_costs_ = nullptr;
  /// By tensor, expert, and whether experts are whole.
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, detail::RankStates> states_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<detail::PipelineStage>>
      stages_;  ///< pipeline, interleave
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, detail::KvReservation>
      reservations_;  ///< batch, tokens, stages
};

}  // namespace headroom
