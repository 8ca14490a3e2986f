// The analytic module: counts a graph. Every figure is an Expr in the symbols of the workload and
// the model; nothing here knows a batch size. `evaluate` (figures.h) turns it into numbers.
#pragma once

#include <string>
#include <vector>

#include "headroom/convention.h"
#include "headroom/graph.h"

namespace headroom {

/// What one pass of something costs.
struct Cost {
  Expr matrix_flops;       ///< of matrix products, by the convention
  Expr elementwise_flops;  ///< of everything else: see op_cost.h for the factors
  Expr bytes_read;
  Expr bytes_written;

  Cost& operator+=(const Cost& other);
};

/// The cost of a node's forward and backward pass, once.
struct NodeCost {
  Cost forward;
  Cost backward;  ///< bytes are not counted
};

/// One operator in its block, with the cost of all the block's layers together.
struct NodeAnalysis {
  std::string path;
  Component component;
  Expr parameters;
  NodeCost cost;
};

/// All nodes of one component.
struct ComponentAnalysis {
  Component component;
  Expr parameters;
  NodeCost cost;
};

/// Bytes that are live while one node runs.
struct LiveBytes {
  std::string path;
  Expr bytes;
};

/// What a saved tensor is there for.
enum class SavedKind { tensor, mask, statistic, input_data };

/// When recomputation makes it unnecessary to keep a tensor.
enum class KeptUnder {
  every_recompute,  ///< it stands outside the layers, or is what recomputation starts from
  selective,        ///< kept unless whole layers are computed again
  none,             ///< part of the attention core, the first to go
};

/// One tensor that the forward pass keeps for the backward pass.
struct SavedTensor {
  std::string path;  ///< of the node that keeps it
  std::string what;
  SavedKind kind = SavedKind::tensor;
  KeptUnder kept = KeptUnder::selective;
  Expr bytes;   ///< once
  Expr repeat;  ///< how many layers keep one
};

/// The KV-cache of one layer kind.
struct CacheEntry {
  std::string path;
  Expr bytes;  ///< once
  Expr repeat;
};

/// Parameters by what they are for. Tied weights count once.
struct ParameterCount {
  Expr total;
  Expr embedding;
  Expr relative_position_bias;
  Expr attention;
  Expr recurrent;
  Expr convolution;
  Expr mlp;
  Expr norm;
  Expr head;
  Expr projector;
  Expr routed_experts;  ///< of all that mlp holds, those of experts that a token may not take
  Expr active;          ///< the total less those of the routed experts that a token does not take
};

struct Analysis {
  Convention convention = Convention::headroom;
  ParameterCount parameters;
  std::vector<NodeAnalysis> nodes;
  std::vector<ComponentAnalysis> components;  ///< in order of first appearance
  NodeCost total;
  Cost recompute;                    ///< what the chosen recomputation runs a second time
  std::vector<LiveBytes> live;       ///< by node, in order of execution
  std::vector<SavedTensor> saved;    ///< all that backward needs; empty unless training
  Expr layer_inputs;                 ///< bytes of the inputs of all layers, kept by full recompute
  std::vector<CacheEntry> kv_cache;  ///< empty where there is none
};

/// How a graph is counted.
struct AnalysisOptions {
  Convention convention = Convention::headroom;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
  bool operator==(const AnalysisOptions&) const = default;
};

/// Counts `graph`. Throws Error{overflow}.
[[nodiscard]] Analysis analyze(const Graph& graph, const AnalysisOptions& options = {});

/// Parameters of the graph, by role.
[[nodiscard]] ParameterCount count_parameters(const Graph& graph);

/// Whether a tensor is still kept under `recompute`, or computed again.
[[nodiscard]] bool stays_saved(const SavedTensor& saved, Recompute recompute) noexcept;

/// Bytes that stay saved for backward under `recompute`.
[[nodiscard]] Expr saved_bytes(const Analysis& analysis, Recompute recompute);

/// Bytes of the whole KV-cache, and what one more token of one sequence adds to it.
[[nodiscard]] Expr kv_cache_bytes(const Analysis& analysis);
[[nodiscard]] Expr kv_cache_bytes_per_token(const Analysis& analysis);

}  // namespace headroom
