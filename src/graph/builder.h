// GraphBuilder: turns the choices of a ModelSpec into nodes. One file per concern: build_embedding,
// build_layers, build_attention, build_head, … Internal to src/graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "builder_parts.h"
#include "headroom/graph.h"

namespace headroom::detail {

class GraphBuilder : BuiltTensors {
 public:
  GraphBuilder(const ModelSpec& spec, const GraphOptions& options);
  [[nodiscard]] Graph build() &&;
  /// The graph of an image tower, up to its outputs: the rows that the projector reads, and those
  /// of each entry of its deepstack.
  [[nodiscard]] Graph build_tower(const TowerSpec& tower) &&;
  /// The graph of an audio tower, up to its hidden states.
  [[nodiscard]] Graph build_audio_tower() &&;

 private:
  // build_embedding.cpp
  TensorId input_hidden_states(const StackContext& stack);
  TensorId embed_tokens(const StackContext& stack);
  TensorId look_up_tokens(const StackContext& stack, TensorId ids, AddedPositions positions);
  TensorId embed_patches(const StackContext& stack);
  std::vector<WeightId> patch_weights(const ImageSpec& image);
  TensorId embed_audio(const StackContext& stack);
  void set_encoder_width(std::int64_t width);
  TensorId audio_convolution(const std::string& path, Convolution op, TensorId input);
  TensorId add_positions(const StackContext& stack, TensorId hidden);
  TensorId add_patch_positions(const StackContext& stack, TensorId hidden);
  WeightId patch_position_table();
  TensorId project_embedding(const StackContext& stack, TensorId hidden);
  WeightId position_table(const StackContext& stack, const Expr& width);
  TensorId finish_embedding(const StackContext& stack, TensorId hidden);
  WeightId word_embedding(const StackContext& stack);

  // build_denoiser.cpp
  /// Modulation vectors of a layer: shift, scale and gate of attention and network.
  static constexpr std::int64_t kLayerVectors = 6;
  void denoise(const StackContext& stack);
  TensorId graph_input(const std::string& name, std::vector<Expr> shape);
  TensorId embed_latent(const StackContext& stack);
  TensorId add_latent_positions(const StackContext& stack, TensorId hidden);
  TensorId project_vector(Part part, const std::string& path, const Expr& rows, const Expr& width,
                          TensorId input);
  TensorId project_twice(Part part, const std::string& path, ActivationKind activation,
                         const Expr& rows, const Expr& width, TensorId input);
  TensorId embed_numbers(const std::string& name, const Expr& count, const Expr& width);
  TensorId embed_image_size();
  TensorId embed_conditioning(const DenoiserSpec& denoiser);
  TensorId embed_reference_image(const DenoiserSpec& denoiser);
  TensorId add_reference_image(const StackContext& stack, TensorId queries, TensorId context);
  TensorId activated_conditioning(const std::string& path);
  void share_modulation();
  TensorId modulation_vectors(const std::string& path, std::int64_t vectors,
                              ModulationSource source);
  /// Norm without weights, then a scale and a shift; the shift is vector `first`.
  TensorId modulated_norm(const StackContext& stack, const std::string& path, TensorId hidden,
                          TensorId vectors, std::int64_t first);
  TensorId add_gated(const StackContext& stack, const std::string& path, TensorId hidden,
                     TensorId branch, TensorId vectors, std::int64_t vector);
  TensorId project_text(const TextSpec& text);
  void predict_noise(const StackContext& stack, TensorId hidden);

  // build_denoiser_layers.cpp
  template <class Layer>
  void denoiser_layers(const std::string& path, LayerSpan span, TensorId carried_in, Layer layer);
  void use_denoiser_layer(StackContext& stack) const;
  TensorId cross_layers(StackContext stack, TensorId hidden);
  TensorId cross_layer(const StackContext& stack, TensorId hidden);
  TensorId gated_network(const StackContext& stack, TensorId hidden, TensorId vectors,
                         std::int64_t first);
  TensorId joint_layers(StackContext stack, TensorId hidden);
  [[nodiscard]] JointLayer joint_layer_at(std::int64_t layer) const;
  JointStates joint_layer(const StackContext& stack, JointLayer layer, JointStates states);
  TensorId joint_heads(const StackContext& stack, TensorId normed);
  TensorId join_sequences(const std::string& path, const Expr& width, TensorId text,
                          TensorId image);
  TensorId take_tokens(const StackContext& stack, const std::string& path, const Expr& first,
                       TensorId sequence);
  TensorId attend(const StackContext& stack, TensorId qkv);
  TensorId attention_branch(const StackContext& stack, TensorId context);
  TensorId second_attention(const StackContext& stack, TensorId image, TensorId hidden,
                            TensorId vectors);
  TensorId single_layers(const StackContext& stack, JointStates states);
  TensorId single_layer(const StackContext& stack, TensorId hidden);
  /// Calls `function` with `scope` before the paths of nodes and weights.
  template <class Function>
  auto in_scope(std::string scope, Function function);

  // build_tower.cpp
  /// Adds the tower and its projector. Returns the visual tokens, or one vector per image.
  TensorId embed_images(const TowerSpec& tower);
  /// Appends a tower's graph, its sizes as numbers, at `place`.
  std::vector<TensorId> append_tower(Graph tower, const TowerPlace& place);
  TensorId feature_rows(const ProjectorSpec& projector, TensorId hidden, std::int64_t layers);
  TensorId copied_rows(const ProjectorSpec& projector, TensorId hidden, std::int64_t layers);
  TensorId joined_features(const std::vector<std::int64_t>& layers,
                           const std::map<std::int64_t, TensorId>& states);
  TensorId project_images(const std::vector<ProjectorStep>& steps, const std::string& path,
                          std::int64_t index, TensorId features);
  TensorId project_rows(const std::vector<ProjectorStep>& steps, const ProjectorPlace& place,
                        TensorId features);
  TensorId project_step(const ProjectorStep& step, const std::string& path, TensorId features);
  TensorId standardise(TensorId features);
  TensorId pack_tiles(const PackStep& step, TensorId features);
  TensorId project_gated(const GatedStep& step, TensorId features);
  TensorId merge_patches(const MergeStep& step, TensorId features);
  TensorId project_features(const LinearStep& step, TensorId features);
  TensorId insert_visual_tokens(TensorId hidden);
  struct QuerySteps;  // build_queries.cpp
  struct TiledSteps;  // tiled_steps.h
  TensorId project_queries(const ProjectorStep& step, TensorId features);

  // build_audio_tower.cpp and build_conformer.cpp
  /// Adds the audio tower and its projector. Returns the audio tokens.
  TensorId embed_sound(const AudioTowerSpec& tower);
  /// Embeds segments by 2-D convolutions of their spectrograms.
  TensorId embed_grid(const StackContext& stack);
  /// Likewise by convolutions along the frames.
  TensorId embed_segments(const StackContext& stack);
  TensorId finish_segments(const StackContext& stack, std::int64_t columns, TensorId hidden);
  TensorId embed_subsampled(const StackContext& stack);
  TensorId grid_convolution(const std::string& path, const GridConvolution& op, TensorId input);
  TensorId group_rows(const GroupStep& step, TensorId features);
  TensorId drop_silence(TensorId features);
  TensorId insert_audio_tokens(TensorId hidden);
  /// Adds the features of the deepstack that belong behind `layers` layers of the text model.
  TensorId add_deepstack(const StackContext& stack, std::int64_t layers, TensorId hidden);
  void conformer_positions(const StackContext& stack);
  TensorId conformer_layer(const StackContext& stack, TensorId hidden);
  TensorId conformer_network(const StackContext& stack, const std::string& path, TensorId hidden);
  TensorId conformer_attention(const StackContext& stack, TensorId hidden);
  TensorId conformer_convolution(const StackContext& stack, TensorId hidden);
  TensorId clipped(const StackContext& stack, const std::string& path, TensorId hidden);
  TensorId bounded_linear(const StackContext& stack, const LinearParts& parts, TensorId input);
  TensorId within_bounds(const std::string& path, TensorId values);

  // build_similarity.cpp
  /// One vector per image of a tower's rows.
  TensorId pool_images(const StackContext& stack, const ImagePooling& pooling, TensorId hidden);
  TensorId pool_class_tokens(const StackContext& stack, const ClassTokenPooling& pooling,
                             TensorId hidden);
  TensorId pool_by_probe(StackContext stack, const ProbePooling& pooling, TensorId hidden);
  /// Attention of one probe per image to the rows of that image.
  TensorId probe_attention(const StackContext& stack, const AttentionSpec& attention,
                           TensorId probes, TensorId hidden);
  void similarity_head(const SimilarityHeadSpec& spec, TensorId hidden);

  // build_waveform.cpp
  TensorId embed_waveform(const StackContext& stack);
  TensorId waveform_layer(std::size_t index, const Expr& length, TensorId input);
  TensorId project_waveform(const StackContext& stack, TensorId features);
  TensorId batch_norm(const StackContext& stack, TensorId hidden);
  TensorId convolve_positions(const StackContext& stack, TensorId hidden);

  // build_layers.cpp
  TensorId run_stack(const StackContext& stack, TensorId hidden);
  TensorId run_layers(StackContext stack, const LayerRun& run, TensorId hidden);
  TensorId layer(const StackContext& stack, TensorId hidden);
  TensorId transformer_layer(const StackContext& stack, TensorId hidden);
  TensorId parallel_layer(const StackContext& stack, TensorId hidden);
  TensorId gated_norm(const StackContext& stack, std::int64_t gate_rank, const std::string& path,
                      TensorId hidden);
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
  /// Selects experts and their weights for every token.
  TensorId route_tokens(const StackContext& stack, const ExpertsSpec& experts,
                        TensorId router_input);
  /// The chosen experts' outputs, before they are summed; `hidden` has rows of `hidden_width`.
  TensorId expert_networks(const StackContext& stack, const FfnSpec& ffn, TensorId hidden,
                           const Expr& hidden_width, TensorId routing);
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
  void relative_sinusoids(const StackContext& stack);
  TensorId transformer_xl_bias(const StackContext& stack, TensorId query_key_value);
  /// The stack's relative position bias times the gates of a layer's input `hidden`.
  TensorId gated_position_bias(const StackContext& stack, TensorId hidden);
  TensorId self_attention(const StackContext& stack, TensorId hidden);
  TensorId attention_of_heads(const StackContext& stack, TensorId hidden);
  /// The context times its gate, a projection of `input`, if it has one.
  TensorId gated_context(const StackContext& stack, TensorId input, TensorId context);
  TensorId project_heads(const StackContext& stack, TensorId hidden);
  TensorId scaled_keys_and_values(const StackContext& stack, TensorId query_key_value);
  TensorId value_norm(const StackContext& stack, TensorId query_key_value);
  [[nodiscard]] AttentionOperands shared_operands(const StackContext& stack, TensorId query) const;
  TensorId apply_rope_and_norm(const StackContext& stack, TensorId query_key_value);
  TensorId apply_rope(const StackContext& stack, TensorId query_key_value);
  /// Rotates `heads` of `input` if the layer has rotary positions.
  TensorId rotate_heads(const StackContext& stack, const std::string& path, HeadRows heads,
                        TensorId input);
  TensorId query_key_norm(const StackContext& stack, TensorId query_key_value);
  TensorId key_value_cache(const AttentionParts& parts, const Expr& keys, const Expr& width);
  AttentionOperands cached_operands(const StackContext& stack, TensorId query_key_value);
  /// Operands of `projected`: one row of Q, K and V, or Q and a row of K and V.
  AttentionOperands cached_operands(const StackContext& stack, std::vector<TensorId> projected);
  TensorId softmax_attention(const StackContext& stack, const AttentionParts& parts,
                             const AttentionSpec& attention, const AttentionOperands& operands);
  TensorId linear_attention(const StackContext& stack, TensorId query_key_value);
  TensorId attention_output(const StackContext& stack, const AttentionParts& parts,
                            const AttentionSpec& attention, const Expr& context_width,
                            TensorId context);
  /// Number of keys in a layer's KV-cache.
  [[nodiscard]] static Expr cached_keys(const AttentionSpec& attention);
  /// Unmasked pairs of a query and a key, per sequence.
  [[nodiscard]] Expr unmasked_pairs(const StackContext& stack, const AttentionSpec& attention,
                                    const AttentionShape& shape) const;

  // build_cross_attention.cpp
  TensorId cross_attention(const StackContext& stack, TensorId hidden);
  /// Norm of the queries or keys of cross-attention, if it has one.
  TensorId cross_attention_norm(const AttentionSpec& attention, const std::string& path,
                                const HeadRows& rows, TensorId projected);

  // build_global_attention.cpp
  /// `context` with the rows of tokens with global attention replaced.
  TensorId global_attention(const StackContext& stack, TensorId hidden, TensorId context);
  /// K and V of all tokens, and the queries of those with global attention.
  AttentionOperands global_operands(const StackContext& stack, TensorId hidden);

  // build_transient_global.cpp
  TensorId transient_global_attention(const StackContext& stack, TensorId hidden);
  /// Q, K and V of all tokens, and K and V of the transient global ones.
  AttentionOperands transient_global_operands(const StackContext& stack, TensorId hidden);
  TensorId transient_global_tokens(const StackContext& stack, TensorId hidden);
  /// `bias` of one block for all blocks, with the columns of transient global tokens.
  [[nodiscard]] static RelativePositionBias with_transient_global_tokens(RelativePositionBias bias);

  // build_altup.cpp
  /// Weights of AltUp's router, which prediction and correction share.
  struct AltUpRouter {
    WeightId norm;
    WeightId weight;
  };
  TensorId altup_step(const StackContext& stack, const std::string& path, AltUpStep::Kind kind,
                      std::vector<TensorId> inputs, std::int64_t index = 0);
  TensorId altup_inputs(const StackContext& stack, TensorId hidden);
  TensorId altup_output(const StackContext& stack, TensorId streams);
  TensorId altup_coefficients(const StackContext& stack, const AltUpRouter& router,
                              const std::string& name, const Expr& count, TensorId input);
  TensorId altup_layer(const StackContext& stack, TensorId streams);
  TensorId laurel(const StackContext& stack, TensorId hidden);

  // build_per_layer_input.cpp
  TensorId per_layer_branch(const StackContext& stack, TensorId hidden);
  TensorId embed_per_layer(const StackContext& stack, TensorId hidden);
  TensorId add_per_layer_input(const StackContext& stack, TensorId hidden);

  // build_gated_delta.cpp
  TensorId gated_delta(const StackContext& stack, TensorId hidden);
  /// β and α of a gated delta layer, together or apart.
  std::vector<TensorId> delta_rates(const StackContext& stack, const Expr& heads,
                                    const Expr& decays, TensorId hidden);
  /// One projection of `input`, or two of the layer's projection_rank.
  TensorId delta_projection(const StackContext& stack, const std::string& path, const Expr& width,
                            TensorId input);

  // build_gated_recurrence.cpp
  TensorId gated_recurrence(const StackContext& stack, TensorId hidden);

  // build_rwkv.cpp
  TensorId weighted_key_value(const StackContext& stack, TensorId hidden);
  TensorId channel_mix(const StackContext& stack, TensorId hidden);
  // build_time_mix.cpp
  TensorId time_mix(const StackContext& stack, TensorId hidden);
  TensorId eagle_mix(const StackContext& stack, TensorId hidden);
  TensorId goose_mix(const StackContext& stack, TensorId hidden);
  /// The recurrence over `operands`, the norm of each head, the gate, and the output projection.
  TensorId mixed_context(const StackContext& stack, const TimeMixSpec& spec,
                         std::vector<TensorId> operands, std::vector<WeightId> weights,
                         TensorId gate);
  /// The layer's values, of which a share is the first layer's.
  TensorId shared_values(const StackContext& stack, TensorId value, TensorId value_input);
  TensorId low_rank(const StackContext& stack, const LowRankProjection& projection, TensorId input);
  TensorId shift_tokens(const StackContext& stack, Part part, const std::string& path,
                        TensorId hidden);
  TensorId mix_tokens(const StackContext& stack, Part part, const std::string& path,
                      TensorId hidden, TensorId shifted);

  // build_shared_block.cpp
  TensorId adapter(const StackContext& stack, const Adapter& adapter, TensorId input);
  /// `projected` plus the adapters' results of `input`, side by side.
  TensorId adapted(const StackContext& stack, TensorId projected,
                   const std::vector<Adapter>& adapters, TensorId input);
  TensorId adapted_heads(const StackContext& stack, TensorId projected, TensorId input);
  TensorId adapted_network(const StackContext& stack, TensorId input);
  /// Use number `use` of a shared block; its output is for the next layer.
  void shared_block(StackContext stack, std::size_t use, TensorId embedded, TensorId hidden);
  /// `hidden` plus the projected output of the shared block before this layer.
  TensorId with_shared_output(const StackContext& stack, TensorId hidden);

  // build_state_space.cpp
  TensorId state_space(const StackContext& stack, TensorId hidden);
  TensorId dual_state_space(const StackContext& stack, TensorId hidden);
  TensorId selective_state_space(const StackContext& stack, TensorId hidden);
  TensorId lightning_attention(const StackContext& stack, TensorId hidden);
  /// Norms, RoPE and the scale of Ling's heads in `rows`, `[V | K | Q]` of `width` each.
  TensorId lightning_heads(const StackContext& stack, TensorId rows, const Expr& width);
  TensorId gated_convolution(const StackContext& stack, TensorId hidden);
  /// The scan over `operands`, to which it adds the cached state.
  TensorId scan(const StackContext& stack, const StateSpaceSpec& spec, const Expr& first_parameter,
                std::vector<TensorId> operands);
  TensorId gated_scan(const StackContext& stack, const StateSpaceSpec& spec, TensorId scanned,
                      TensorId gate);
  TensorId grouped_norm(const StackContext& stack, const StateSpaceSpec& spec, TensorId scanned);
  /// Convolves `input`, `[batch, tokens, channels]`, by the kernel, activation and bias of `op`.
  /// Ranks divide each of the channels' `parts` by itself.
  TensorId short_convolution(const StackContext& stack, Part part, const std::string& path,
                             WeightRole role, ShortConvolution op, TensorId input,
                             const std::vector<Expr>& parts = {});
  /// A Linear with one projection of all features of `input`.
  TensorId project(const StackContext& stack, Part part, const Projection& projection,
                   WeightRole role, LinearBias bias, TensorId input);
  /// `input` times `factor`; `input` itself if that is 1.
  TensorId scaled(Part part, const std::string& path, double factor, TensorId input);
  /// A number of heads as a multiple of the attention heads h, so that tensor parallelism divides
  /// them too; as a number if it is no multiple.
  [[nodiscard]] Expr heads_of(std::int64_t count) const;

  // build_indexer.cpp
  /// The masks of the blocks of keys that each head of the indexer chooses (MiniMax M3).
  TensorId index_blocks(const StackContext& stack, TensorId hidden);
  /// Index queries or the index key of a token: projected, normed and rotated.
  TensorId block_index_heads(const StackContext& stack, const std::string& name, const Expr& heads,
                             TensorId hidden);
  /// Appends `keys` to the cache of the indexer's, if there is one, and returns all keys.
  TensorId cached_index_keys(const StackContext& stack, TensorId keys);
  /// Masks the keys that the indexer left out. A fused kernel reads only the others.
  void read_chosen_keys(TensorId choice, AttentionOperands& operands) const;
  /// The mask of the keys that the layer's indexer, or the last one before it, chooses.
  std::optional<TensorId> key_choice(const StackContext& stack, TensorId hidden, TensorId queries);
  TensorId index_queries(const StackContext& stack, TensorId queries, const Expr& first_rotary);
  TensorId scaled_queries(const TemperatureScale& scale, Part part, const std::string& path,
                          TensorId queries);
  TensorId index_keys(const StackContext& stack, TensorId hidden);
  struct PoolSteps;
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
  TensorId key_and_gate(const StackContext& stack, const CompressorParts& parts, TensorId hidden);
  TensorId sum_windows(const StackContext& stack, const CompressorParts& parts, TensorId rows);
  TensorId cached_entries(const CompressorParts& parts, TensorId pooled);
  TensorId grouped_output(const StackContext& stack, TensorId context);
  /// Rotates the last dimensions of heads, whose rows are `step` positions apart.
  TensorId rotate_end(const StackContext& stack, const std::string& path, HeadRows heads,
                      const Expr& seq_len, RotaryDirection direction, TensorId input,
                      std::int64_t step = 1);

  // build_hyper_connections.cpp
  TensorId expand_streams(const StackContext& stack, TensorId hidden);
  TensorId stream_weights(const StackContext& stack, const std::string& path,
                          StreamWeights::Site site, TensorId streams);
  TensorId sum_streams(const StackContext& stack, const std::string& path, TensorId streams,
                       TensorId weights);
  TensorId join_streams(const StackContext& stack, TensorId streams);
  TensorId update_streams(const StackContext& stack, const std::string& path, TensorId streams,
                          TensorId branch, TensorId weights);

  // build_attention_residuals.cpp
  /// A layer whose sublayers read sums of the hidden states in front of earlier blocks.
  TensorId attention_residual_layer(const StackContext& stack, TensorId hidden);
  TensorId output_residual(const StackContext& stack, TensorId hidden);
  /// The sum of those states and `hidden`, weighted by their scores; `hidden` in the first layer.
  TensorId attend_residuals(const StackContext& stack, const std::string& path, TensorId hidden);

  // build_block_connections.cpp
  /// The hidden states that `layer` reads: `hidden`, which it keeps, with those of earlier layers.
  TensorId connect_blocks(const StackContext& stack, std::int64_t layer, TensorId hidden);

  // build_recurrent.cpp
  TensorId recurrent(const StackContext& stack, TensorId hidden);
  TensorId convolution_layer(const StackContext& stack, TensorId hidden);
  TensorId input_convolution(const StackContext& stack, TensorId input, TensorId hidden);

  // build_factorised_attention.cpp
  TensorId factorised_attention(const StackContext& stack, TensorId hidden);

  // build_latent_attention.cpp
  TensorId latent_attention(const StackContext& stack, TensorId hidden);
  TensorId latent_queries(const StackContext& stack, TensorId compressed);
  TensorId latent_keys(const StackContext& stack, TensorId hidden);
  void append_latents(const StackContext& stack);
  TensorId absorbed_attention(const StackContext& stack, TensorId queries, TensorId cache,
                              std::optional<TensorId> choice);
  TensorId expanded_attention(const StackContext& stack, TensorId queries, TensorId latents,
                              std::optional<TensorId> choice);

  // build_head.cpp
  void head(const StackContext& stack, TensorId hidden);
  TensorId select_token(Part part, TensorId hidden);
  TensorId pool_tokens(const StackContext& stack, TokenPooling pooling, TensorId hidden);
  TensorId classifier_features(const StackContext& stack, const ClassifierSpec& spec,
                               TensorId hidden);
  TensorId project_tokens(const StackContext& stack, const ClassifierSpec& spec, TensorId hidden);
  TensorId classifier_dense(const ClassifierSpec& spec, TensorId features);
  TensorId last_token(TensorId hidden);
  TensorId last_token_logits(const ClassifierSpec& spec, TensorId logits);
  TensorId pooler(TensorId hidden);
  TensorId project_out(const StackContext& stack, TensorId hidden);
  TensorId language_model_transform(const Expr& rows, TensorId hidden);
  TensorId adjust_logits(const LanguageModelHeadSpec& spec, TensorId logits);
  void language_model_head(const StackContext& stack, TensorId hidden);
  void classifier(const StackContext& stack, TensorId hidden);
  void loss(const std::string& path, TensorId logits, const Expr& rows, const Expr& classes,
            SoftmaxPrecision precision);

  // builder.cpp
  void add_counted_weights();
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
  [[nodiscard]] Expr embedding_width() const;
  [[nodiscard]] bool has_narrow_embedding() const { return spec_.embedding.embedding_size != 0; }
  /// Returns whether the word embeddings of `stack` are normed before they get positions.
  [[nodiscard]] bool norms_before_positions(const StackContext& stack) const;
  [[nodiscard]] bool training() const { return options_.phase == Phase::train; }
  /// True if this pass runs the image tower: a decode step finds its tokens in the KV-cache.
  [[nodiscard]] bool reads_images() const;
  [[nodiscard]] bool reads_sound() const;

  const ModelSpec& spec_;
  GraphOptions options_;
  Graph graph_;
  StackRole role_ = StackRole::single;
  std::string scope_;                     ///< before the paths of a second sequence's nodes
  std::string layer_slice_;               ///< suffix of node paths in a stack of different layers
  std::int64_t layer_ = 0;                ///< index in the current run
  std::optional<Integer> weight_groups_;  ///< sets of weights that layers share
  bool emit_nodes_ = true;        ///< false while counting only the weights of a skipped part
  bool is_tower_ = false;         ///< the rows of all images are one sequence
  bool attends_in_runs_ = false;  ///< likewise of all segments of sound (AudioTotals::pairs)
};

}  // namespace headroom::detail
