// Graph: a model as operators over symbolic sizes, in execution order. Equal layers are folded into
// one block with a repeat count. A graph is built once per model, phase and attention
// implementation; batch and lengths stay symbols. The analytic module counts it, the measured
// module runs it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "headroom/op.h"
#include "headroom/workload.h"

namespace headroom {

using TensorId = std::size_t;  ///< index into Graph::tensors
using WeightId = std::size_t;  ///< index into Graph::weights

/// Stack of a node; `single` in a model with one stack, `tower` in its image encoder, `audio_tower`
/// in its encoder of sound.
enum class StackRole { single, encoder, decoder, tower, audio_tower };

/// Part of a model that a node belongs to: a row of the component table.
enum class Part {
  embeddings,
  conditioning,
  text_projection,
  modulation,
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
  attention_compressor,
  attention_indexer,
  attention_out,
  mixer_in,
  mixer_convolution,
  mixer_scan,
  mixer_gate,
  mixer_out,
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
  mlp_latent,
  mlp_shared_expert,
  layer_norm,
  rms_norm,
  norm_gate,
  residual,
  hyper_connection,
  dropout,
  pooler,
  head,
  vision_tower,
  audio_tower,
  projector,
  adapter,
  loss,
  communication,
};

/// "attention.qkv", "mlp.up", …
[[nodiscard]] std::string_view name_of(Part part) noexcept;

/// A part in one of the stacks.
struct Component {
  StackRole stack = StackRole::single;
  Part part = Part::embeddings;
  bool operator==(const Component&) const = default;
};

/// "attention.qkv", or "decoder.attention.qkv" in a model with two stacks.
[[nodiscard]] std::string name_of(const Component& component);

/// Kind of a tensor's elements. Token ids are `index`. The others outlive the pass: keys and values
/// of heads; one vector per position that is a key, or key and value in one; the projections of
/// tokens whose window of compressed keys is not complete, in the type of the activations; the last
/// inputs of a short convolution, likewise; and the state of a recurrence, which the reference code
/// keeps in float32 whatever the types of weights and KV-cache.
enum class ElementType {
  activation,
  index,
  kv_cache,
  key_cache,
  compressor_state,
  convolution_state,
  recurrent_state,
};

/// True for the types that outlive the pass.
[[nodiscard]] bool is_cached(ElementType type) noexcept;

/// Bytes of an element: a symbol of the workload, or a number.
[[nodiscard]] Expr bytes_of(ElementType type);

/// A value that flows between nodes, or a cache tensor that nodes read and write.
struct Tensor {
  std::string name;
  std::vector<Expr> shape;
  ElementType type = ElementType::activation;

  [[nodiscard]] Expr elements() const;
};

[[nodiscard]] std::string_view name_of(WeightRole role) noexcept;

/// A parameter is trained and counted; a buffer is stored and not counted.
enum class WeightKind { parameter, buffer };

/// A frozen weight has no gradient and no optimizer state.
enum class Training { trained, frozen };

/// Tokens whose forward pass reads a weight: all, or only those of images, so that a text's active
/// parameters leave it out (ERNIE 4.5 VL's experts of images).
enum class Readers { all_tokens, image_tokens };

/// A stored tensor with a canonical path such as "encoder.layers.attention.query.weight".
struct Weight {
  std::string path;
  std::vector<Expr> shape;
  WeightRole role = WeightRole::embedding;
  Expr repeat;  ///< number of copies: one per layer, or per group of layers that share it
  Component component;
  WeightKind kind = WeightKind::parameter;
  Training training = Training::trained;
  /// Bytes of all copies as they are stored; empty: Symbol::weight_bytes per element.
  std::optional<Integer> stored_bytes{};
  /// Those bytes by copy, where copies differ; empty where all are equal.
  std::vector<Integer> stored_bytes_of_copy{};
  ModelPart model_part = ModelPart::text;
  /// LoRA adapters with a matrix here, which `stored_bytes` counts all: a pass reads those of its
  /// sequences. 0: not an adapter's.
  std::int64_t held_adapters = 0;
  /// Parts of the first dimension, if ranks divide each by itself: Mamba-2's x, B and C.
  std::vector<Expr> parts{};
  Readers readers = Readers::all_tokens;

  /// Elements of one layer's copy.
  [[nodiscard]] Expr elements() const;
};

/// An `in_place` output may reuse the memory of an input that is dead afterwards.
enum class Placement { new_buffer, in_place };

/// Steps of multi-head latent attention that training recomputes apart from others: the norms of
/// compressed queries and of latents, and what expands these to heads.
enum class LatentStep { none, norm, expansion };

/// One operator with its operands.
struct Node {
  std::string path;  ///< within its block
  Component component;
  Op op;
  std::vector<TensorId> inputs;
  TensorId output = 0;
  std::vector<WeightId> weights;
  Placement placement = Placement::new_buffer;
  std::int64_t layer = 0;  ///< index in the block's run, from 0 to layers_per_run - 1
  LatentStep latent_step = LatentStep::none;
};

/// A tensor that a run of a block reads, and the one that the next run reads in its place.
struct CarriedTensor {
  TensorId in = 0;
  TensorId out = 0;
};

/// Nodes that run `repeat` times in sequence. Each later run reads the previous run's `carried_out`
/// as its `carried_in`. One run of a layer block covers `layers_per_run` layers: more than one
/// where layers of several kinds alternate.
struct Block {
  std::string path;
  Expr repeat;
  std::vector<Node> nodes;
  TensorId carried_in = 0;
  TensorId carried_out = 0;
  /// Text states of a diffusion transformer's joint layers.
  std::optional<CarriedTensor> carried_text{};
  std::int64_t layers_per_run = 0;  ///< 0 outside the layers
  std::int64_t first_layer = 0;     ///< index in the stack
  /// Consecutive layers of the stack that share one set of weights.
  std::int64_t layers_per_weights = 1;

  [[nodiscard]] bool is_layers() const noexcept { return layers_per_run > 0; }
  /// Returns whether `tensor` is one that the previous run hands on.
  [[nodiscard]] bool carries_in(TensorId tensor) const noexcept {
    return tensor == carried_in || (carried_text && tensor == carried_text->in);
  }
  /// Index in the stack of the layer that `node` belongs to in run `run`.
  [[nodiscard]] std::int64_t layer_of(const Node& node, std::int64_t run) const noexcept {
    return first_layer + run * layers_per_run + node.layer;
  }
  /// Index of the set of weights that `node` uses in run `run`.
  [[nodiscard]] std::int64_t weights_of(const Node& node, std::int64_t run) const noexcept {
    return layer_of(node, run) / layers_per_weights;
  }

  // Special members are compiled once (src/graph/special_members.cpp).
  Block();
  Block(const Block& other);
  Block(Block&& other) noexcept;
  Block& operator=(const Block& other);
  Block& operator=(Block&& other) noexcept;
  ~Block();
};

/// Images in a pass, or none.
enum class ImageInputs { absent, present };

/// Sound in a pass, or none.
enum class AudioInputs { absent, present };

/// Tokens with global attention in a pass, or none.
enum class GlobalTokens { absent, present };

/// Choices that a graph is built for. Workload sizes and types stay symbols.
struct GraphOptions {
  Phase phase = Phase::prefill;
  AttentionImplementation attention = AttentionImplementation::eager;
  LatentAttention latent = LatentAttention::absorbed;
  ImageInputs images = ImageInputs::absent;
  GlobalTokens global = GlobalTokens::absent;
  Logits logits = Logits::all;
  AudioInputs audio = AudioInputs::absent;
  bool operator==(const GraphOptions&) const = default;
};

/// Properties of a model's layers that, with the workload, decide the keys and experts they read.
struct LayerTraits {
  WindowSpec window;
  WindowSpec encoder_window;              ///< of an encoder-decoder's encoder
  std::int64_t encoder_block = 0;         ///< AttentionSpec::block_size of its layers
  std::int64_t encoder_global_block = 0;  ///< AttentionSpec::global_block_size of its layers
  std::int64_t chunk_window = 0;          ///< widest window of attention in chunks; 0: none
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t indexer_top_k = 0;           ///< 0: no indexer
  std::int64_t indexed_rate = 1;            ///< tokens per key that an indexer scores
  std::int64_t indexed_block = 1;           ///< keys per block that an indexer chooses
  bool chooses_pools = false;               ///< IndexerSpec::pools, of indexed_rate tokens
  std::int64_t heavy_compression_rate = 0;  ///< tokens per compressed key without an indexer

  /// True if costs depend on whole windows of tokens, so that they are not polynomials in a length.
  [[nodiscard]] bool compresses_keys() const noexcept {
    return indexed_rate > 1 || heavy_compression_rate > 0;
  }
  bool operator==(const LayerTraits&) const = default;
};

/// A model as blocks of nodes, in execution order. Invariants, for every graph of build_graph and
/// shard:
/// - A node's inputs come first: each is the output of an earlier node, the block's `carried_in`, a
///   graph input, or a cache tensor, which no node outputs. `carried_text` begins with one of
///   these.
/// - Only collectives repeat the output or the path (the block's, ".", the node's) of another node.
/// - An in-place output has the shape of the node's first input.
/// - A layer block's `carried_out` has the shape of its `carried_in`.
/// - Tied weights are one Weight that several nodes use. A weight without a node belongs to a part
///   that this phase does not run, and is only counted.
/// - `sizes` binds the model's sizes. Every other symbol depends on the workload (bindings_of) or
/// the
///   parallel plan (rank_bindings in parallel_plan.h).
struct Graph {
  GraphOptions options;
  std::vector<Tensor> tensors;
  std::vector<Weight> weights;
  std::vector<Block> blocks;  ///< in execution order
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Bindings sizes;                   ///< model sizes: d, h, V, …
  LayerTraits traits;               ///< decide derived symbols such as u and y
  std::vector<Relation> relations;  ///< between model sizes: h·k → d, …

  // Special members are compiled once (src/graph/special_members.cpp).
  Graph();
  Graph(const Graph& other);
  Graph(Graph&& other) noexcept;
  Graph& operator=(const Graph& other);
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();
};

/// Builds the graph of `spec`, which must come from a reader, since readers validate it. Throws
/// Error{invalid_input} for layers with windows of several sizes.
[[nodiscard]] Graph build_graph(const ModelSpec& spec, const GraphOptions& options);

/// Options of a prefill that runs every part of a model, image towers too: its nodes read every
/// weight that a run loads, but for those that are only counted.
[[nodiscard]] GraphOptions all_parts() noexcept;

/// The graph options of `workload`.
[[nodiscard]] GraphOptions graph_options(const Workload& workload) noexcept;

/// Returns whether training changes any weight of `node`.
[[nodiscard]] bool is_trained(const Graph& graph, const Node& node);

/// Returns whether recipes of few bits compute `node` in their 8-bit type: a GEMM of a layer with
/// stored weights. They leave the head, embeddings, routers, attention scores and norms in 16 bit
/// (arXiv 2412.19437, section 3.3.1; arXiv 2211.10438, section 4).
[[nodiscard]] bool is_layer_gemm(const Block& block, const Node& node);

/// Returns whether `node` belongs to the core of eager attention, from scores to context with the
/// dropout of the probabilities: the operators that selective recompute drops from memory and runs
/// again (arXiv 2205.05198, section 5). A fused kernel does not, since its backward pass recomputes
/// the core anyway.
[[nodiscard]] bool in_attention_core(const Node& node);

/// A cache tensor, and the block and node that use it first. The pointers are into the graph.
struct CacheTensor {
  TensorId tensor = 0;
  const Block* block = nullptr;
  const Node* node = nullptr;
};

/// The cache tensors of `graph` in execution order: KV-caches and recurrent states, one per kind of
/// layer.
[[nodiscard]] std::vector<CacheTensor> cache_tensors(const Graph& graph);

/// Values of the workload's symbols, derived ones included: b, s, n, p, t, c, u, x, y and the bytes
/// per element. Throws Error{overflow}.
[[nodiscard]] Bindings bindings_of(const Workload& workload, const LayerTraits& traits);

/// Those values and the graph's model sizes. Throws Error{overflow}.
[[nodiscard]] Bindings bindings_of(const Workload& workload, const Graph& graph);

/// Growth of a layer with a window by the next token: a key more, or none, for one leaves it.
enum class WindowFill { filling, full };
/// Of the model's windows at the length of `workload`.
[[nodiscard]] WindowFill window_fill(const Workload& workload, const LayerTraits& traits);

/// Relations that hold for this workload: t → s without a past, s → 1 in a single-token decode, and
/// bytes per element as numbers.
[[nodiscard]] std::vector<Relation> relations_of(const Workload& workload);

}  // namespace headroom
