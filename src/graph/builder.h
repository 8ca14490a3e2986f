// GraphBuilder: turns the choices of a ModelSpec into nodes. One file per concern: build_embedding,
// build_layers, build_attention, build_head, … Internal to src/graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headroom/graph.h"

namespace headroom::detail {

inline const Expr kBatch = Symbol::batch_size;

/// One weight matrix `[out_features, in_features]` with its bias. Several projections may share one
/// Linear, which concatenates their outputs.
struct Projection {
  std::string name;
  Expr out_features;
  enum class Bias { of_linear, none } bias = Bias::of_linear;
};

enum class LinearBias { absent, present };

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

  [[nodiscard]] Expr query_width() const { return heads * head_dim; }
  [[nodiscard]] Expr key_width() const { return kv_heads * head_dim; }
  [[nodiscard]] Expr value_width() const { return kv_heads * value_head_dim; }
  [[nodiscard]] Expr context_width() const { return heads * value_head_dim; }
  [[nodiscard]] Expr row_width() const { return query_width() + key_width() + value_width(); }
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
  HeadSizes heads;

  [[nodiscard]] Expr rows() const { return Expr(Symbol::batch_size) * tokens; }
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

class GraphBuilder {
 public:
  GraphBuilder(const ModelSpec& spec, const GraphOptions& options);
  [[nodiscard]] Graph build() &&;

 private:
  // build_embedding.cpp
  TensorId input_hidden_states(const StackContext& stack);
  TensorId embed_tokens(const StackContext& stack);
  TensorId look_up_tokens(const StackContext& stack, TensorId ids);
  TensorId embed_patches(const StackContext& stack);
  TensorId embed_audio(const StackContext& stack);
  TensorId audio_convolution(const std::string& path, Convolution op, TensorId input);
  TensorId add_positions(const StackContext& stack, TensorId hidden);
  TensorId project_embedding(const StackContext& stack, TensorId hidden);
  WeightId position_table(const StackContext& stack, const Expr& width);
  TensorId finish_embedding(const StackContext& stack, TensorId hidden);
  WeightId word_embedding(const StackContext& stack);

  // build_waveform.cpp
  TensorId embed_waveform(const StackContext& stack);
  TensorId waveform_layer(std::size_t index, const Expr& length, TensorId input);
  TensorId project_waveform(const StackContext& stack, TensorId features);
  TensorId convolve_positions(const StackContext& stack, TensorId hidden);

  // build_layers.cpp
  TensorId run_stack(const StackContext& stack, TensorId hidden);
  TensorId run_layers(StackContext stack, const LayerRun& run, TensorId hidden);
  TensorId layer(const StackContext& stack, TensorId hidden);
  TensorId transformer_layer(const StackContext& stack, TensorId hidden);
  TensorId parallel_layer(const StackContext& stack, TensorId hidden);
  TensorId layer_scale(const StackContext& stack, const std::string& path, TensorId branch);
  TensorId add_residual(const StackContext& stack, const std::string& path, TensorId hidden,
                        TensorId branch);
  TensorId scale_layer(const StackContext& stack, TensorId hidden);
  TensorId final_norm(const StackContext& stack, TensorId hidden);

  // build_feed_forward.cpp
  TensorId feed_forward(const StackContext& stack, TensorId hidden);
  TensorId feed_forward(const StackContext& stack, TensorId normed, TensorId residual);
  TensorId dense_network(const StackContext& stack, const FfnSpec& ffn, const Expr& width,
                         const std::string& path, std::optional<Part> part, TensorId hidden);
  /// Trained constants of an activation.
  std::vector<WeightId> activation_weights(Part part, const std::string& path, ActivationKind kind);
  TensorId routed_experts(const StackContext& stack, const FfnSpec& ffn, TensorId router_input,
                          TensorId hidden);
  TensorId experts_beside_dense(const StackContext& stack, const FfnSpec& ffn, TensorId normed,
                                TensorId residual);
  TensorId shared_expert(const StackContext& stack, const FfnSpec& ffn, TensorId hidden,
                         TensorId routed);
  TensorId expert_linear(ExpertLinear op, const std::vector<Projection>& projections, Part part,
                         const std::string& path, std::vector<TensorId> inputs);
  template <class Function>
  TensorId hyper_sublayer(const StackContext& stack, const std::string& name,
                          double dropout_probability, TensorId streams, Function function);
  template <class Function>
  TensorId sublayer(const StackContext& stack, const std::string& name, double dropout_probability,
                    TensorId hidden, Function function);

  // build_attention.cpp
  void relative_position_bias(const StackContext& stack);
  void relative_embeddings(const StackContext& stack);
  TensorId disentangled_bias(const StackContext& stack, TensorId query_key_value);
  TensorId self_attention(const StackContext& stack, TensorId hidden);
  TensorId attention_of_heads(const StackContext& stack, TensorId hidden);
  TensorId cross_attention(const StackContext& stack, TensorId hidden);
  TensorId gated_context(const StackContext& stack, TensorId hidden, TensorId context);
  TensorId project_heads(const StackContext& stack, TensorId hidden);
  TensorId value_norm(const StackContext& stack, TensorId query_key_value);
  [[nodiscard]] AttentionOperands shared_operands(const StackContext& stack,
                                                  TensorId queries) const;
  TensorId apply_rope_and_norm(const StackContext& stack, TensorId query_key_value);
  TensorId query_key_norm(const StackContext& stack, TensorId query_key_value);
  TensorId key_value_cache(const AttentionParts& parts, const Expr& keys, const Expr& width);
  AttentionOperands cached_operands(const StackContext& stack, TensorId query_key_value);
  TensorId softmax_attention(const StackContext& stack, const AttentionParts& parts,
                             const AttentionSpec& attention, const AttentionOperands& operands);
  TensorId linear_attention(const StackContext& stack, TensorId query_key_value);
  TensorId attention_output(const StackContext& stack, const AttentionParts& parts,
                            const AttentionSpec& attention, const Expr& context_width,
                            TensorId context);
  /// Number of keys in a layer's KV-cache.
  [[nodiscard]] static Expr cached_keys(const AttentionSpec& attention);

  // build_per_layer_input.cpp
  TensorId embed_per_layer(const StackContext& stack, TensorId hidden);
  TensorId add_per_layer_input(const StackContext& stack, TensorId hidden);

  // build_gated_delta.cpp
  TensorId gated_delta(const StackContext& stack, TensorId hidden);

  // build_state_space.cpp
  TensorId state_space(const StackContext& stack, TensorId hidden);
  TensorId dual_state_space(const StackContext& stack, TensorId hidden);
  TensorId selective_state_space(const StackContext& stack, TensorId hidden);
  TensorId lightning_attention(const StackContext& stack, TensorId hidden);
  TensorId gated_convolution(const StackContext& stack, TensorId hidden);
  /// The scan over `operands`, to which it adds the cached state.
  TensorId scan(const StackContext& stack, const StateSpaceSpec& spec, const Expr& first_parameter,
                std::vector<TensorId> operands);
  /// Gate and norm of a scan's output.
  TensorId gated_scan(const StackContext& stack, const StateSpaceSpec& spec, TensorId scanned,
                      TensorId gate);
  /// Convolves `input`, `[batch, tokens, channels]`, by the kernel, activation and bias of `op`.
  TensorId short_convolution(const StackContext& stack, Part part, const std::string& path,
                             WeightRole role, ShortConvolution op, TensorId input);
  /// A Linear with one projection of all features of `input`.
  TensorId project(const StackContext& stack, Part part, const Projection& projection,
                   WeightRole role, LinearBias bias, TensorId input);
  /// `input` times `factor`; `input` itself if that is 1.
  TensorId scaled(Part part, const std::string& path, double factor, TensorId input);
  /// A number of heads as a multiple of the attention heads h, so that tensor parallelism divides
  /// them too; as a number if it is no multiple.
  [[nodiscard]] Expr heads_of(std::int64_t count) const;

  // build_indexer.cpp
  /// The mask of the keys that the layer's indexer, or the last one before it, chooses.
  std::optional<TensorId> key_choice(const StackContext& stack, TensorId hidden,
                                     TensorId compressed_queries);
  TensorId index_queries(const StackContext& stack, TensorId compressed_queries,
                         const Expr& first_rotary);
  TensorId index_keys(const StackContext& stack, TensorId hidden);
  TensorId choose_keys(const StackContext& stack, TensorId hidden, TensorId queries, TensorId keys,
                       std::int64_t rate);

  // build_compressed_attention.cpp
  TensorId shared_key_value_attention(const StackContext& stack, TensorId hidden);
  TensorId compressed_queries(const StackContext& stack, TensorId hidden, std::int64_t rank,
                              LinearBias bias, const NormSpec& spec);
  TensorId normed_queries(const StackContext& stack, TensorId compressed);
  AttentionOperands window_operands(const StackContext& stack, TensorId queries, TensorId keys);
  void add_compressed_keys(const StackContext& stack, TensorId hidden, TensorId compressed,
                           AttentionOperands& operands);
  TensorId compress_keys(const StackContext& stack, const CompressorParts& parts, TensorId hidden);
  TensorId cached_entries(const CompressorParts& parts, TensorId pooled);
  TensorId grouped_output(const StackContext& stack, TensorId context);
  TensorId rotate_end(const StackContext& stack, const std::string& path, HeadRows heads,
                      const Expr& seq_len, RotaryDirection direction, TensorId input);

  // build_hyper_connections.cpp
  TensorId expand_streams(const StackContext& stack, TensorId hidden);
  TensorId stream_weights(const StackContext& stack, const std::string& path,
                          StreamWeights::Site site, TensorId streams);
  TensorId sum_streams(const StackContext& stack, const std::string& path, TensorId streams,
                       TensorId weights);
  TensorId update_streams(const StackContext& stack, const std::string& path, TensorId streams,
                          TensorId branch, TensorId weights);

  // build_recurrent.cpp
  TensorId recurrent(const StackContext& stack, TensorId hidden);
  TensorId convolution_layer(const StackContext& stack, TensorId hidden);
  TensorId input_convolution(const StackContext& stack, TensorId input, TensorId hidden);

  // build_latent_attention.cpp
  TensorId latent_attention(const StackContext& stack, TensorId hidden);
  TensorId latent_queries(const StackContext& stack, TensorId compressed);
  TensorId latent_keys(const StackContext& stack, TensorId hidden);
  TensorId absorbed_attention(const StackContext& stack, TensorId queries, TensorId cache,
                              std::optional<TensorId> choice);
  TensorId expanded_attention(const StackContext& stack, TensorId queries, TensorId latents,
                              std::optional<TensorId> choice);

  void add_counted_weights();

  // build_head.cpp
  void head(const StackContext& stack, TensorId hidden);
  TensorId select_token(Part part, TensorId hidden);
  TensorId pool_tokens(const StackContext& stack, TokenPooling pooling, TensorId hidden);
  TensorId classifier_features(const StackContext& stack, const ClassifierSpec& spec,
                               TensorId hidden);
  TensorId classifier_dense(const ClassifierSpec& spec, TensorId features);
  TensorId pooler(TensorId hidden);
  TensorId project_out(const StackContext& stack, TensorId hidden);
  TensorId language_model_transform(const Expr& rows, TensorId hidden);
  TensorId adjust_logits(const LanguageModelHeadSpec& spec, TensorId logits);
  void language_model_head(const StackContext& stack, TensorId hidden);
  void classifier(const StackContext& stack, TensorId hidden);
  void loss(const std::string& path, TensorId logits, const Expr& rows, const Expr& classes,
            SoftmaxPrecision precision);

  // builder.cpp
  void begin_block(const std::string& path, StackRole role, const Expr& repeat,
                   TensorId carried_in);
  TensorId end_block(TensorId carried_out);
  TensorId tensor(std::string name, std::vector<Expr> shape,
                  ElementType type = ElementType::activation);
  WeightId weight(Part part, const std::string& path, std::vector<Expr> shape, WeightRole role);
  /// A weight that an earlier node of this layer reads.
  [[nodiscard]] WeightId weight_of_layer(const std::string& path) const;
  /// Adds a node with a new output tensor.
  TensorId emit(Part part, const std::string& path, Op op, std::vector<TensorId> inputs,
                std::vector<WeightId> weights, std::vector<Expr> output_shape);
  /// Adds a node whose output has the shape of its first input and may reuse its memory.
  TensorId emit_in_place(Part part, const std::string& path, Op op, std::vector<TensorId> inputs,
                         std::vector<WeightId> weights = {});
  TensorId linear(const LinearParts& parts, TensorId input, std::vector<Expr> output_shape);
  TensorId norm(const NormSpec& spec, const std::string& path, const Expr& rows, TensorId input);
  TensorId norm(const NormSpec& spec, const std::string& path, Norm op, TensorId input);
  std::vector<WeightId> norm_weights(const NormSpec& spec, Part part, const std::string& path,
                                     const std::vector<Expr>& shape);
  TensorId dropout(const std::string& path, double probability, TensorId input,
                   Part part = Part::dropout);
  [[nodiscard]] std::vector<Expr> hidden_shape(const StackContext& stack) const;
  /// `symbol` if `value` is its value in this model, else the number `value`.
  [[nodiscard]] Expr sized(Symbol symbol, std::int64_t value) const;
  [[nodiscard]] HeadSizes head_sizes(const AttentionSpec& attention) const;
  /// Width of the word embedding.
  [[nodiscard]] Expr embedding_width() const;
  [[nodiscard]] bool has_narrow_embedding() const { return spec_.embedding.embedding_size != 0; }
  [[nodiscard]] bool training() const { return options_.phase == Phase::train; }

  const ModelSpec& spec_;
  GraphOptions options_;
  Graph graph_;
  StackRole role_ = StackRole::single;
  std::string layer_slice_;               ///< suffix of node paths in a stack of different layers
  std::int64_t layer_ = 0;                ///< index in the current run
  std::optional<Integer> weight_groups_;  ///< sets of weights that layers share
  bool emit_nodes_ = true;  ///< false while counting only the weights of a skipped part
  std::optional<WeightId> word_embedding_;
  std::optional<TensorId> position_bias_;
  std::optional<TensorId> position_table_;
  std::optional<TensorId> encoder_output_;
  std::optional<TensorId> per_layer_input_;
  std::optional<TensorId> key_choice_;  ///< of the last indexer
  /// K and V of the last layer that projected them, by kind of window.
  std::map<WindowKind, AttentionOperands> key_values_;
};

}  // namespace headroom::detail
