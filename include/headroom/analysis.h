// The analytic module: counts a graph. Every figure is an Expr in the symbols of the workload and
// the model; Evaluator (figures.h) turns it into numbers.
#pragma once

#include <string>
#include <vector>

#include "headroom/convention.h"
#include "headroom/graph.h"

namespace headroom {

/// Cost of one pass.
struct Cost {
  Expr matrix_flops;       ///< of GEMMs, by the convention
  Expr elementwise_flops;  ///< of all other arithmetic, by the factors of op_cost.h
  Expr bytes_read;
  Expr bytes_written;

  Cost& operator+=(const Cost& other);
};

/// Cost of a forward and a backward pass.
struct NodeCost {
  Cost forward;
  Cost backward;  ///< without bytes, which are not counted
};

/// One operator, with the cost of all layers of its block.
struct NodeAnalysis {
  std::string path;
  Component component;
  Expr parameters;
  NodeCost cost;
};

/// One component, with the cost of all its nodes.
struct ComponentAnalysis {
  Component component;
  Expr parameters;
  NodeCost cost;
};

/// Activation bytes live while one node runs.
struct LiveBytes {
  std::string path;
  Expr bytes;
};

/// Kind of a saved tensor.
enum class SavedKind { tensor, mask, statistic, input_data };

/// Strongest recomputation under which a tensor stays saved.
enum class KeptUnder {
  every_recompute,  ///< always saved: outside the layers, or read by all of them
  selective,        ///< dropped by full recompute only
  none,             ///< dropped by selective recompute: inside the attention core
};

/// One tensor that the forward pass saves for the backward pass.
struct SavedTensor {
  std::string path;  ///< of the node that saves it
  std::string what;
  SavedKind kind = SavedKind::tensor;
  KeptUnder kept = KeptUnder::selective;
  Expr bytes;   ///< of one copy
  Expr repeat;  ///< number of copies, one per layer
};

/// KV-cache of one kind of layer.
struct CacheEntry {
  std::string path;
  Expr bytes;  ///< of one layer
  Expr repeat;
};

/// Parameters by role. Tied weights count once.
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
  Expr routed_experts;  ///< the part of mlp in routed experts
  Expr active;          ///< total less the routed experts that one token does not use
};

/// Every figure of a graph. All rows cover all layers of their block.
struct Analysis {
  Convention convention = Convention::headroom;
  ParameterCount parameters;
  std::vector<NodeAnalysis> nodes;
  std::vector<ComponentAnalysis> components;  ///< in order of first appearance
  NodeCost total;
  Cost recompute;                    ///< of the operators that run again in the backward pass
  std::vector<LiveBytes> live;       ///< by node, in execution order
  std::vector<SavedTensor> saved;    ///< without recomputation; empty unless training
  Expr layer_inputs;                 ///< bytes of all layer inputs, which full recompute saves
  std::vector<CacheEntry> kv_cache;  ///< empty without a cache
};

/// Choices of how a graph is counted.
struct AnalysisOptions {
  Convention convention = Convention::headroom;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
  bool operator==(const AnalysisOptions&) const = default;
};

/// Counts `graph`. Throws Error{overflow}.
[[nodiscard]] Analysis analyze(const Graph& graph, const AnalysisOptions& options = {});

/// Counts the parameters of `graph` by role.
[[nodiscard]] ParameterCount count_parameters(const Graph& graph);

/// Returns whether `saved` stays in memory under `recompute`.
[[nodiscard]] bool stays_saved(const SavedTensor& saved, Recompute recompute) noexcept;

/// Bytes saved for the backward pass under `recompute`.
[[nodiscard]] Expr saved_bytes(const Analysis& analysis, Recompute recompute);

/// Bytes of the whole KV-cache.
[[nodiscard]] Expr kv_cache_bytes(const Analysis& analysis);
/// Bytes that one more token of one sequence adds to the KV-cache.
[[nodiscard]] Expr kv_cache_bytes_per_token(const Analysis& analysis);

}  // namespace headroom
