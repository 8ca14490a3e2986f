// RankProgram: a sharded graph compiled for fast evaluation, by section of the model. One serves
// all plans of the same structure: degrees come in as values. Internal to src/plan.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/figures.h"
#include "headroom/plan.h"
#include "stage_layout.h"

namespace headroom::detail {

/// One pass of one section on one rank, or of several together; of a kind of layers, all of them.
struct SectionCosts {
  double forward_s = 0;
  double backward_s = 0;
  double core_s = 0;  ///< the attention core's forward, which selective recompute runs again
  double forward_exchange_s = 0;
  double backward_exchange_s = 0;
  double forward_flops = 0;
  Integer saved = 0;         ///< kept for the backward pass without recompute
  Integer saved_core = 0;    ///< of which selective recompute drops
  Integer layer_inputs = 0;  ///< what full recompute keeps
};

struct RankCosts {
  std::array<SectionCosts, kOutsideSections> outside;  ///< by Section::Kind
  std::vector<SectionCosts> layers;                    ///< by kind
  Integer tables = 0;             ///< kept once for all layers and micro-batches
  Integer peak = 0;               ///< of live activations
  std::vector<Integer> kv_cache;  ///< by kind
  Integer logits = 0;             ///< one copy
  Integer hidden = 0;             ///< bytes that a stage sends on, an encoder's output with them
};

/// The seconds that a rank needs for something.
struct RankSpeed {
  double flops_per_s = 1;
  double memory_bytes_per_s = 1;
  double exchange_latency_s = 0;
  std::int64_t tensor_ranks = 1;
  double tensor_bytes_per_s = 1;
  std::int64_t context_ranks = 1;
  double context_bytes_per_s = 1;
  std::int64_t expert_ranks = 1;
  double expert_bytes_per_s = 1;
  double bytes_saved_per_weight = 0;  ///< by storing the layers' matrices in fewer than 16 bits
};

/// What a plan's structure decides: which exchanges there are at all.
struct Structure {
  bool tensor = false;
  SequenceParallel sequence = SequenceParallel::off;
  bool context = false;
  std::int64_t experts = 1;  ///< degree: the experts that a rank holds are part of the graph
  bool operator==(const Structure&) const = default;
};

class RankProgram {
 public:
  RankProgram(const Graph& whole, const Structure& structure, Kernels kernels);

  /// `values` must have every symbol of the workload and the rank's sizes; l is that of the model.
  [[nodiscard]] RankCosts costs(const SymbolValues& values, const RankSpeed& speed) const;

  /// The exchanges of one pass, each section's layers together.
  struct ExchangeBytes {
    Section section;
    RankGroup group;
    CollectiveKind kind;
    bool backward;
    double count;
    double bytes;  ///< as Collective::bytes, of one
  };
  [[nodiscard]] std::vector<ExchangeBytes> exchanges(const SymbolValues& values) const;

 private:
  struct CompiledNode {
    Section section;
    bool core;
    CompiledExpr flops;
    CompiledExpr bytes;
    CompiledExpr backward_flops;
    CompiledExpr layer_matrices;  ///< elements of the weights that a format may shrink
  };
  struct CompiledExchange {
    Section section;
    RankGroup group;
    CollectiveKind forward;
    CollectiveKind backward;
    CompiledExpr bytes;
    CompiledExpr repeat;
  };
  struct CompiledSaved {
    Section section;
    bool core;
    bool table;
    CompiledExpr bytes;
  };

  void compile_nodes(const Graph& graph, const Analysis& analysis);
  void compile_saved(const Graph& graph, const Analysis& analysis);
  void compile_memory(const Graph& graph, const Analysis& analysis);
  [[nodiscard]] RankCosts empty_costs() const;
  void add_exchanges(const SymbolValues& values, const RankSpeed& speed, RankCosts& costs) const;

  Bindings constants_;
  std::vector<CompiledNode> nodes_;
  std::vector<CompiledExchange> exchanges_;
  std::vector<CompiledSaved> saved_;
  std::vector<CompiledExpr> live_;
  std::vector<CompiledExpr> layer_inputs_;  ///< by kind
  std::vector<CompiledExpr> kv_cache_;      ///< by kind
  std::optional<CompiledExpr> logits_;
  std::optional<CompiledExpr> hidden_;
};

/// The costs of a section.
[[nodiscard]] SectionCosts& section_of(RankCosts& costs, const Section& section);

/// The seconds of one exchange.
[[nodiscard]] double exchange_seconds(CollectiveKind kind, double bytes, RankGroup group,
                                      const RankSpeed& speed);
/// Bytes that a rank sends for it.
[[nodiscard]] double exchange_bytes(CollectiveKind kind, double bytes, RankGroup group,
                                    const RankSpeed& speed);

}  // namespace headroom::detail
