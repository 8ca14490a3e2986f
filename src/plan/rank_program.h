// RankProgram: a sharded graph compiled for fast evaluation, by section of the model. One program
// serves all plans of the same structure: degrees come in as values. Internal to src/plan.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "expert_exchange.h"
#include "headroom/analysis.h"
#include "headroom/plan.h"
#include "headroom/recompute_modules.h"
#include "stage_layout.h"
#include "training_time.h"

namespace headroom::detail {

/// Costs on one rank of one pass through a section; for a kind of layers, through all of them.
struct SectionCosts {
  double forward_s = 0;
  double backward_s = 0;
  std::array<double, kLayerParts> part_s{};  ///< the forward by LayerPart, repeated by recompute
  double weights_s = 0;                      ///< forward of the operators that read weights
  double experts_s = 0;        ///< forward of the operators between dispatched and combined tokens
  double compute_bound_s = 0;  ///< serving: part of the forward that arithmetic bounds
  double weights_bound_s = 0;  ///< likewise of weights_s
  double roofline_s = 0;       ///< serving: the forward's operators by the datasheet
  double weights_roofline_s = 0;  ///< likewise of weights_s
  double forward_communication_s = 0;
  double backward_communication_s = 0;
  double dispatch_s = 0;  ///< part of the forward communication: tokens to their experts
  double combine_s = 0;   ///< and back
  /// Forward communication by the LayerPart that runs it again.
  std::array<double, kLayerParts> part_communication_s{};
  // Parts of the communication that GEMMs hide with TensorOverlap::on.
  double forward_hidden_s = 0;
  double backward_hidden_s = 0;
  std::array<double, kLayerParts> part_hidden_s{};
  double model_flops = 0;  ///< training: forward and gradients, without recomputation
  Integer saved = 0;       ///< bytes for the backward pass without recompute
  std::array<Integer, kLayerParts> saved_parts{};  ///< by the LayerPart that drops them
  Integer layer_inputs = 0;                        ///< bytes that full recompute saves
  Integer largest_gradients = 0;  ///< of one operator's inputs and output in the backward pass
};

/// Costs on one rank of one pass.
struct RankCosts {
  std::array<SectionCosts, kOutsideSections> outside;  ///< by Section::Kind
  std::vector<SectionCosts> layers;                    ///< by kind
  Integer tables = 0;             ///< bytes saved once for all layers and micro-batches
  Integer peak = 0;               ///< bytes of live activations
  std::vector<Integer> kv_cache;  ///< bytes by kind
  Integer logits = 0;             ///< bytes of one copy
  Integer saved_logits = 0;       ///< bytes with one value per word, saved outside the layers
  Integer head_weights = 0;       ///< trained elements of the head
  Integer hidden = 0;             ///< bytes that a stage sends on, an encoder's output included
  Integer key_choice = 0;  ///< bytes that it also sends if a cut divides layers that share it
};

/// Rates of one rank, and of its links to the other ranks of each group.
struct RankSpeed {
  double flops_per_s = 1;
  double layer_gemm_flops_per_s = 1;       ///< of is_layer_gemm
  double peak_flops_per_s = 1;             ///< by the datasheet
  double layer_gemm_peak_flops_per_s = 1;  ///< likewise, of is_layer_gemm
  std::int64_t processors = 0;             ///< serving: as EffectiveRates::processors
  std::int64_t layer_gemm_processors = 0;  ///< likewise, of is_layer_gemm
  double memory_bytes_per_s = 1;
  double cache_bytes_per_s = 1;  ///< serving: by attention
  double collective_latency_s = 0;
  double collective_step_s = 0;
  double collective_node_step_s = 0;
  std::int64_t tensor_ranks = 1;
  std::int64_t tensor_nodes = 1;
  double tensor_bytes_per_s = 1;
  double engine_bytes_per_s = 0;  ///< serving: all-reduces by the engine's own kernel; 0: by NCCL
  double fixed_factor = 1;        ///< as Efficiency::fixed
  double switch_bytes_per_s = 0;  ///< serving: of a buffer that switches reduce; 0: they do not
  std::int64_t context_ranks = 1;
  std::int64_t context_nodes = 1;
  double context_bytes_per_s = 1;
  ExpertLinks expert;
  double expert_load = 1;     ///< tokens of the fullest rank of experts over the mean
  double dispatch_share = 1;  ///< bytes of dispatched tokens over those in the activations' type
  double whole_memory_bytes_per_s = 1;      ///< by the datasheet
  double gradient_bytes = 4;                ///< training: of a weight's gradient
  std::optional<SavedInputs> saved_inputs;  ///< training: as RecipeInfo::saved_inputs
  double kernel_s = 0;                      ///< as DeviceRates::kernel_s
  double layer_gemm_kernel_s = 0;           ///< likewise
  /// Serving: keys and values that one multiprocessor reads, where they are not divided; 0: they
  /// are.
  double head_elements_per_s = 0;
};

/// One collective of a rank.
struct CollectiveMessage {
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  double bytes = 0;                     ///< as Collective::bytes
  std::optional<TokenRouting> routing;  ///< all_to_all: of the tokens that it exchanges
};

[[nodiscard]] double as_double(const CompiledExpr& expr, const SymbolValues& values);

/// Seconds of an operator in a pass.
struct OperatorSeconds {
  double forward_s = 0;
  double backward_s = 0;
  double compute_bound_s = 0;  ///< serving: part of the forward that arithmetic bounds
  double roofline_s = 0;       ///< serving: the forward by the datasheet
};

/// Properties of a plan that decide which operators its sharded graph has.
struct Structure {
  bool tensor = false;
  SequenceParallel sequence = SequenceParallel::off;
  bool context = false;
  std::int64_t experts = 1;  ///< degree: a rank's number of experts is a constant of the graph
  ExpertTensor expert_tensor = ExpertTensor::divided;
  bool operator==(const Structure&) const = default;
};

class RankProgram {
 public:
  RankProgram(const Graph& whole, const Structure& structure, Kernels kernels);

  /// `values` must have every symbol of the workload and the rank's sizes; l is the whole model's.
  /// The tokens of the pass use `adapters` of the served ones, or as many as there are.
  [[nodiscard]] RankCosts costs(const SymbolValues& values, const RankSpeed& speed,
                                std::int64_t adapters) const;

  /// One direction of a collective in one pass, for all layers of its section.
  struct RepeatedCollective {
    Section section;
    LayerPart part;  ///< that runs it again
    bool backward;
    double count;
    CollectiveMessage message;  ///< of one
  };
  [[nodiscard]] std::vector<RepeatedCollective> collectives(const SymbolValues& values,
                                                            const RankSpeed& speed) const;

 private:
  /// A weight that a node reads in its stored format.
  struct CompiledRead {
    CompiledExpr elements;
    double bytes_per_element;
    std::int64_t adapters;  ///< that have a part of it each; 0: a pass reads the whole weight

    [[nodiscard]] double bytes(const SymbolValues& values, std::int64_t used) const;
  };
  /// The sizes of a GEMM, as GemmExprs.
  struct CompiledGemm {
    CompiledExpr rows;
    CompiledExpr in_features;
    CompiledExpr out_features;
    CompiledExpr count;

    [[nodiscard]] double tiled_share(const SymbolValues& values, std::int64_t processors) const;
  };
  /// Attention of a decode step whose kernel divides the keys of no head.
  struct CompiledHeads {
    CompiledExpr sequences;
    CompiledExpr query_heads;
    CompiledExpr key_heads;
    CompiledExpr elements;  ///< keys and values of one head

    /// Of one layer; 0 if the keys are divided.
    [[nodiscard]] double seconds(const SymbolValues& values, const RankSpeed& speed) const;
  };
  struct CompiledNode {
    Section section;
    OpKind kind;
    LayerPart part;
    bool layer_gemm;
    bool reads_weights;
    bool attends;
    bool on_exchanged_tokens;
    CompiledExpr layers;
    CompiledExpr flops;
    CompiledExpr bytes;  ///< without those of `reads`
    CompiledExpr backward_flops;
    std::optional<CompiledGemm> gemm;    ///< serving
    std::optional<CompiledHeads> heads;  ///< serving: of attention in a decode step
    std::vector<CompiledRead> reads;
    CompiledExpr weights;         ///< training: elements of a GEMM's weights
    CompiledExpr trained;         ///< those of them that are trained
    CompiledExpr permuted_bytes;  ///< training: one copy of the tokens, as sent to experts
    double permutations;

    [[nodiscard]] double all_bytes(const SymbolValues& values, double load,
                                   std::int64_t adapters) const;
    /// The fullest rank's tokens over the mean.
    [[nodiscard]] double load(const RankSpeed& speed) const {
      return on_exchanged_tokens ? speed.expert_load : 1;
    }
    [[nodiscard]] double flops_per_s(const RankSpeed& speed) const {
      return layer_gemm ? speed.layer_gemm_flops_per_s : speed.flops_per_s;
    }
    [[nodiscard]] double peak_flops_per_s(const RankSpeed& speed) const {
      return layer_gemm ? speed.layer_gemm_peak_flops_per_s : speed.peak_flops_per_s;
    }
    [[nodiscard]] std::int64_t processors(const RankSpeed& speed) const {
      return layer_gemm ? speed.layer_gemm_processors : speed.processors;
    }
    /// Reading bytes, by all multiprocessors or by those that have a head.
    [[nodiscard]] double memory_seconds(double work_bytes, const SymbolValues& values,
                                        const RankSpeed& speed) const;
    [[nodiscard]] double fixed_seconds(const SymbolValues& values, const RankSpeed& speed) const;
    [[nodiscard]] OperatorSeconds serving_seconds(const SymbolValues& values,
                                                  const RankSpeed& speed,
                                                  std::int64_t adapters) const;
    [[nodiscard]] OperatorSeconds training_seconds(const SymbolValues& values,
                                                   const RankSpeed& speed) const;
    /// Adds the operator's part of one pass.
    void add_to(SectionCosts& costs, const OperatorSeconds& seconds,
                const SymbolValues& values) const;
  };
  struct CompiledCollective {
    Section section;
    RankGroup group;
    CollectiveKind forward;
    CollectiveKind backward;
    Dispatch dispatch;
    CompiledExpr bytes;
    CompiledExpr repeat;
    std::optional<TokenRouting> routing;
    LayerPart part;
    bool on_exchanged_tokens = false;
    std::vector<std::size_t> gemms{};  ///< nodes_ that can hide it

    /// One collective in the pass that `pass` names.
    [[nodiscard]] CollectiveMessage message_in(Dispatch pass, const SymbolValues& values,
                                               const RankSpeed& speed) const;
  };
  /// Bytes, of which those that hold exchanged tokens grow with RankSpeed::expert_load.
  struct CompiledBytes {
    CompiledExpr bytes;
    bool on_exchanged_tokens = false;

    [[nodiscard]] Integer evaluate(const SymbolValues& values, const RankSpeed& speed) const;
  };
  struct CompiledGradients {
    Section section;
    CompiledBytes bytes;
  };
  struct CompiledSaved {
    Section section;
    LayerPart part;
    bool table;
    bool logits;
    SavedReaders readers;
    CompiledBytes bytes;
    CompiledBytes values;  ///< in one byte each

    [[nodiscard]] Integer evaluate(const SymbolValues& values_of, const RankSpeed& speed) const;
  };

  void compile_nodes(const Graph& graph, const Analysis& analysis, const Graph& whole);
  void compile_collective(const Section& section, const Collective& op, const Expr& repeat,
                          LayerPart part);
  void compile_head(const Graph& graph, const Analysis& analysis, const Graph& whole);
  [[nodiscard]] CompiledNode compiled_node(const Section& section, const Block& block,
                                           const Node& node, const NodeAnalysis& analysis,
                                           const Graph& whole) const;
  void compile_saved(const Graph& graph, const Analysis& analysis);
  void compile_gradients(const Graph& graph);
  void compile_memory(const Graph& graph, const Analysis& analysis);
  /// `seconds` are those of nodes_.
  void add_communication(const SymbolValues& values, const RankSpeed& speed,
                         const std::vector<OperatorSeconds>& seconds, RankCosts& costs) const;

  Bindings constants_;
  bool trains_ = false;
  bool expert_parallel_ = false;
  std::vector<CompiledNode> nodes_;
  std::vector<CompiledCollective> collectives_;
  std::vector<CompiledSaved> saved_;
  std::vector<CompiledGradients> gradients_;  ///< training: of each operator in a layer
  std::vector<CompiledBytes> live_;
  std::vector<CompiledExpr> layer_inputs_;  ///< by kind
  std::vector<CompiledExpr> kv_cache_;      ///< by kind
  std::optional<CompiledExpr> logits_;
  std::optional<CompiledExpr> head_weights_;  ///< training
  std::optional<CompiledExpr> hidden_;
  std::optional<CompiledExpr> key_choice_;
};

[[nodiscard]] SectionCosts& section_of(RankCosts& costs, const Section& section);

}  // namespace headroom::detail
