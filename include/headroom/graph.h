// Graph: a model as operators over symbolic sizes, in execution order. Equal layers are folded into
// one block with a repeat count. It is built once for a model, phase and attention implementation;
// batch and lengths stay symbols. The analytic module counts it, the measured module runs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "headroom/op.h"
#include "headroom/workload.h"

namespace headroom {

using TensorId = std::size_t;
using WeightId = std::size_t;

/// Which stack a node belongs to; `single` where a model has only one.
enum class StackRole { single, encoder, decoder };

/// The part of a model that a node belongs to: the rows of the component table.
enum class Part {
  embeddings,
  relative_position_bias,
  attention_qkv,
  attention_query_key_norm,
  attention_rotary,
  attention_kv_cache,
  attention_feature_map,
  attention_scores,
  attention_softmax,
  attention_context,
  attention_core,
  attention_gate,
  attention_convolution,
  attention_out,
  recurrent_input,
  recurrent_core,
  convolution,
  convolution_activation,
  cross_attention_query,
  cross_attention_key_value,
  cross_attention_kv_cache,
  cross_attention_scores,
  cross_attention_softmax,
  cross_attention_context,
  cross_attention_core,
  cross_attention_out,
  mlp_up,
  mlp_activation,
  mlp_down,
  mlp_router,
  mlp_experts_up,
  mlp_experts_activation,
  mlp_experts_down,
  mlp_experts_combine,
  mlp_shared_expert,
  layer_norm,
  rms_norm,
  residual,
  dropout,
  pooler,
  head,
  vision_tower,
  loss,
  communication,
};

/// "attention.qkv", "mlp.up", …
[[nodiscard]] std::string_view name_of(Part part) noexcept;

struct Component {
  StackRole stack = StackRole::single;
  Part part = Part::embeddings;
  bool operator==(const Component&) const = default;
};

/// "attention.qkv", or "decoder.attention.qkv" where there are two stacks.
[[nodiscard]] std::string name_of(const Component& component);

/// What a tensor's elements are. Token ids are `index`; a KV-cache outlives the pass.
enum class ElementType { activation, kv_cache, index };

struct Tensor {
  std::string name;
  std::vector<Expr> shape;
  ElementType type = ElementType::activation;

  [[nodiscard]] Expr elements() const;
};

[[nodiscard]] std::string_view name_of(WeightRole role) noexcept;

/// Whether a stored tensor is trained, and so counted as parameters, or only kept beside them.
enum class WeightKind { parameter, buffer };

/// Whether training changes a weight. A frozen one has no gradient and no optimizer state.
enum class Training { trained, frozen };

/// A stored tensor. `path` is canonical, such as "encoder.layers.attention.query.weight".
struct Weight {
  std::string path;
  std::vector<Expr> shape;
  WeightRole role = WeightRole::embedding;
  Expr repeat;  ///< how many layers have one of it
  Component component;
  WeightKind kind = WeightKind::parameter;
  Training training = Training::trained;

  /// Elements of one layer's copy.
  [[nodiscard]] Expr elements() const;
};

/// Whether an output may take the memory of an input that is not needed any more.
enum class Placement { new_buffer, in_place };

struct Node {
  std::string path;  ///< inside its block
  Component component;
  Op op;
  std::vector<TensorId> inputs;
  TensorId output = 0;
  std::vector<WeightId> weights;
  Placement placement = Placement::new_buffer;
  std::int64_t layer = 0;  ///< of its block's: 0, unless a run goes through several layers
};

/// Nodes that run `repeat` times, one after the other. Each further run reads `carried_out` of the
/// one before in the place of `carried_in`. A run of a stack's block goes through
/// `layers_per_run` layers, which is more than one where layers of several kinds alternate.
struct Block {
  std::string path;
  Expr repeat;
  std::vector<Node> nodes;
  TensorId carried_in = 0;
  TensorId carried_out = 0;
  std::int64_t layers_per_run = 0;  ///< 0 outside of the layers
  std::int64_t first_layer = 0;     ///< of the stack's
  /// Layers of the stack that share one set of weights; 1 where each has its own.
  std::int64_t layers_per_weights = 1;

  [[nodiscard]] bool is_layers() const noexcept { return layers_per_run > 0; }
  /// The stack's layer that `node` belongs to in one run, and the one whose weights it takes.
  [[nodiscard]] std::int64_t layer_of(const Node& node, std::int64_t run) const noexcept {
    return first_layer + run * layers_per_run + node.layer;
  }
  [[nodiscard]] std::int64_t weights_of(const Node& node, std::int64_t run) const noexcept {
    return layer_of(node, run) / layers_per_weights;
  }
};

/// What a graph is built for. Sizes and types are not part of it: they stay symbols.
struct GraphOptions {
  Phase phase = Phase::prefill;
  AttentionImplementation attention = AttentionImplementation::eager;
  LatentAttention latent = LatentAttention::absorbed;
  bool operator==(const GraphOptions&) const = default;
};

/// What of a model's layers decides, with the workload, how many keys they read and how many
/// experts.
struct LayerTraits {
  WindowSpec window;
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  bool operator==(const LayerTraits&) const = default;
};
/// Whether training changes any weight of `node`.
struct Graph;
[[nodiscard]] bool is_trained(const Graph& graph, const Node& node);

struct Graph {
  GraphOptions options;
  std::vector<Tensor> tensors;
  std::vector<Weight> weights;
  std::vector<Block> blocks;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Bindings sizes;                   ///< the model's own sizes: d, h, V, …
  LayerTraits traits;               ///< what else of the model decides derived symbols
  std::vector<Relation> relations;  ///< how those sizes are related: h·k → d, …
};

/// The graph of `spec`. `spec` must have been read by a reader, which validates it.
[[nodiscard]] Graph build_graph(const ModelSpec& spec, const GraphOptions& options);

/// The options that `workload` asks for.
[[nodiscard]] GraphOptions graph_options(const Workload& workload) noexcept;

/// Values of the workload's symbols, derived ones included: b, s, n, p, t, c, element sizes, and
/// u, x and y of a model with such layers.
[[nodiscard]] Bindings bindings_of(const Workload& workload, const LayerTraits& traits);

/// The same and the model's own sizes.
[[nodiscard]] Bindings bindings_of(const Workload& workload, const Graph& graph);

/// Relations that hold for this workload only: t → s without a past, s → 1 in a single-token
/// decode, element sizes as numbers.
[[nodiscard]] std::vector<Relation> relations_of(const Workload& workload);

}  // namespace headroom
