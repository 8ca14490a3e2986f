// Parameters and contexts of GraphBuilder. Internal to src/graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headroom/graph.h"

namespace headroom::detail {

inline const Expr kBatch = Symbol::batch_size;
inline const Expr kHidden = Symbol::hidden_size;

/// One weight matrix `[out_features, in_features]` with its bias. Several projections may share one
/// Linear, which concatenates their outputs.
struct Projection {
  std::string name;
  Expr out_features;
  enum class Bias { of_linear, none } bias = Bias::of_linear;
  std::vector<Expr> parts{};  ///< of out_features, as in Weight
};

enum class LinearBias { absent, present };

/// Two projections with few features between them, and an activation of these (RWKV-7).
struct LowRankProjection {
  std::string path;
  std::int64_t rank = 0;
  Expr width;
  ActivationKind activation = ActivationKind::identity;
  LinearBias bias = LinearBias::present;  ///< of the second
};

/// Parameters of a Linear node.
struct LinearParts {
  Part part = Part::head;
  std::string path;
  WeightRole role = WeightRole::head;
  Expr rows;
  Expr in_features;
  std::vector<Projection> projections;
  bool bias = false;
  Expr row_width{};  ///< stride between input rows; zero: in_features
};

/// Sizes of an attention's heads.
struct HeadSizes {
  Expr heads;
  Expr kv_heads;
  Expr head_dim;
  Expr value_head_dim;
  Expr nope{};  ///< dimensions of an MLA head without and with RoPE
  Expr rope{};

  [[nodiscard]] Expr query_width() const { return heads * head_dim; }
  [[nodiscard]] Expr key_width() const { return kv_heads * head_dim; }
  [[nodiscard]] Expr value_width() const { return kv_heads * value_head_dim; }
  [[nodiscard]] Expr context_width() const { return heads * value_head_dim; }
  [[nodiscard]] Expr row_width() const { return query_width() + key_width() + value_width(); }
  [[nodiscard]] AttentionShape shape(const Expr& queries, const Expr& keys) const {
    return {kBatch, heads, kv_heads, head_dim, value_head_dim, queries, keys};
  }
};

/// Consecutive layers of a stack: `repeat` times the sequence `variants`.
struct LayerRun {
  std::int64_t first_layer = 0;
  std::int64_t repeat = 1;
  std::vector<std::size_t> variants;

  [[nodiscard]] std::int64_t layers() const {
    return repeat * static_cast<std::int64_t>(variants.size());
  }
};

/// Runs that cover the layers of `stack` in order, found greedily from the front.
[[nodiscard]] std::vector<LayerRun> layer_runs(const StackSpec& stack);

/// Layers whose hidden states, in front of them, block connections keep.
[[nodiscard]] std::set<std::int64_t> connection_sources(const StackSpec& stack);

/// `runs`, cut after each of `layers` unless layers of several kinds alternate there.
[[nodiscard]] std::vector<LayerRun> cut_after(const std::vector<LayerRun>& runs,
                                              const std::vector<std::int64_t>& layers);

/// Place of a layer in its block of attention residuals.
enum class ResidualPlace { first_of_block, within_block };

/// The stack and layer under construction.
struct StackContext {
  const StackSpec* spec = nullptr;
  StackRole role = StackRole::single;
  std::string path;
  Expr num_layers;
  Expr tokens;                              ///< new tokens per sequence: s, or n in an encoder
  KeySource keys = KeySource::projections;  ///< of self-attention
  const PositionSpec* position = nullptr;
  // The layer under construction:
  const AttentionSpec* attention = nullptr;
  const FfnSpec* ffn = nullptr;
  const ConvolutionSpec* convolution = nullptr;
  ResidualPlace residual_place = ResidualPlace::within_block;
  HeadSizes heads;

  [[nodiscard]] Expr rows() const { return Expr(Symbol::batch_size) * tokens; }
};

/// Place of a tower in the graph of its model.
struct TowerPlace {
  Component component;
  std::string path;
  Expr sequences;  ///< the tower's batch
  Expr rows;       ///< of each sequence
};

/// Place of a projector in the graph of its model.
struct ProjectorPlace {
  StackRole stack = StackRole::tower;
  std::string path;
  std::int64_t index = 0;  ///< of several projectors with this path
};

/// Operands of a softmax attention.
struct AttentionOperands {
  AttentionShape shape;
  std::vector<TensorId> tensors;  ///< one of Q, K and V; or one of Q and one of K and V
  KeySource keys = KeySource::projections;
  ValuePlace values = ValuePlace::after_keys;
  std::optional<Expr> pairs{};       ///< unmasked pairs, where the spec does not tell
  std::optional<TensorId> choice{};  ///< mask of the keys that an indexer chose
};

/// A compressor of keys, and the length of its results.
struct CompressorParts {
  Part part = Part::attention_compressor;
  std::string path;
  Expr width;
  KeyCompressionSpec spec;
  Expr entries;
  Expr new_entries;
};

/// Component-table rows of an attention's operators.
struct AttentionParts {
  std::string path;
  Part kv_cache;
  Part scores;
  Part softmax;
  Part context;
  Part core;
  Part out;
};
[[nodiscard]] AttentionParts self_attention_parts();
[[nodiscard]] AttentionParts cross_attention_parts();

/// Two projections of low rank, whose result is added to `out_features` of another.
struct Adapter {
  Part part = Part::mlp_up;
  WeightRole role = WeightRole::mlp;
  std::string path;
  Expr out_features;
  std::vector<Expr> parts{};  ///< as in Projection
};

/// `count` equal layers from `first` on, of `all` in their stack.
struct LayerSpan {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t all = 0;
};
/// Text states behind a joint layer.
enum class TextOutput { none, states };
/// Attentions of the image tokens in a joint layer.
enum class ImageAttentions { one, two };

struct JointLayer {
  TextOutput text = TextOutput::states;
  ImageAttentions attentions = ImageAttentions::one;
  bool operator==(const JointLayer&) const = default;
};

/// Hidden states of both sequences.
struct JointStates {
  TensorId image = 0;
  TensorId text = 0;
};

/// Tensors and weights of a build that later steps read.
struct BuiltTensors {
  std::optional<WeightId> word_embedding_;
  std::optional<TensorId> position_bias_;
  std::optional<TensorId> position_table_;
  std::optional<TensorId> encoder_output_;     ///< or the projected text
  std::optional<TensorId> reference_image_;    ///< of a diffusion transformer, projected
  std::optional<TensorId> conditioning_;       ///< of a diffusion transformer
  std::optional<TensorId> shared_modulation_;  ///< likewise
  std::optional<TensorId> per_layer_input_;
  std::optional<TensorId> visual_tokens_;
  std::optional<TensorId> audio_tokens_;
  std::optional<TensorId> image_vectors_;  ///< compared with those of texts
  std::vector<TensorId> deepstack_;        ///< projected features, by layer of the text model
  std::optional<TensorId> key_choice_;     ///< of the last indexer
  std::optional<TensorId> shared_output_;  ///< of a shared block, until the next layer reads it
  std::size_t shared_use_ = 0;
  bool reuses_weights_ = false;  ///< true in a shared block, whose weights may exist already
  std::optional<TensorId> first_values_;  ///< of the first layer's time mixing (RWKV-7)
  std::vector<TensorId> block_states_;    ///< in front of each block of attention residuals so far
  std::map<std::int64_t, TensorId> kept_states_;  ///< in front of each layer (block connections)
  /// K and V of the last layer that projected them, by kind of window.
  std::map<WindowKind, AttentionOperands> key_values_;
  /// MLA's latent vectors of the last layer with such a projection, or their cache: of layers
  /// without and with RoPE.
  std::map<bool, TensorId> latents_;
  std::map<bool, TensorId> latent_caches_;
};

}  // namespace headroom::detail
