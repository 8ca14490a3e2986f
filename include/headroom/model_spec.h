// ModelSpec: what a model is, as independent choices. A family (bert, llama, …) is a short function
// from its config.json to one of these; one builder turns any of them into a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

enum class NormKind { layer_norm, rms_norm };
/// What the normalised values are multiplied by: nothing, a trained weight w, or 1 + w.
enum class NormWeight { none, plain, one_plus };
/// Where the norms of a layer stand: x + f(norm(x)), norm(x + f(x)), or nowhere; `sandwich` is
/// x + norm(f(norm(x))) (Gemma 2), `output` x + norm(f(x)) (OLMo 2).
enum class NormPlacement { pre, post, none, sandwich, output };
/// How attention and feed-forward network follow each other: x' = x + f(x), y = x' + g(x'), or both
/// of the same x: x + f(norm(x)) + g(norm(x)), with one norm for both or one for each.
enum class ResidualKind { sequential, parallel_one_norm, parallel_two_norms };
/// `gelu` is exact (erf); `gelu_tanh` its approximation in one kernel; `gelu_new` the same formula
/// that Hugging Face writes out in elementary operations. `clamped_swiglu` is gpt-oss's, gated
/// only: (min(max(up, -7), 7) + 1) · g · sigmoid(1.702·g) with g = min(gate, 7).
enum class ActivationKind { relu, gelu, gelu_tanh, gelu_new, silu, tanh, sigmoid, clamped_swiglu };
/// `gated_delta` is a linear attention whose state decays and is corrected (arXiv 2412.06464).
enum class AttentionKind { softmax, linear, gated_delta };
/// A plain feed-forward network is down(act(up(x))), a gated one down(act(gate(x)) * up(x)).
enum class FfnKind { none, plain, gated };
/// How a recurrent layer makes its next state h out of an input and the state before: tanh of their
/// products' sum, with a memory and three gates (Hochreiter & Schmidhuber 1997, doi
/// 10.1162/neco.1997.9.8.1735, with the forget gate of Gers et al. 2000), or with two gates (Cho et
/// al. 2014, arXiv 1406.1078). Gates and their order are those of torch.nn.RNN, LSTM and GRU.
enum class RecurrentCell { rnn, lstm, gru };
/// Where a token's position comes in.
enum class PositionKind { none, learned, sinusoidal, rotary, relative_bias };
enum class AttentionScale { inverse_sqrt_head_dim, none, fixed };
/// The type that the reference code computes its softmax in.
enum class SoftmaxPrecision { activation, float32 };
enum class InputKind { tokens, patches, audio, hidden_states };
enum class WeightSharing { separate, shared };

struct NormSpec {
  NormKind kind = NormKind::layer_norm;
  bool bias = true;
  double eps = 1e-5;
  NormWeight weight = NormWeight::plain;
};

enum class RopeScalingKind { none, linear, dynamic, llama3, yarn, longrope };
/// Which two dimensions of a head turn together: i and i + half, or 2·i and 2·i + 1.
enum class RopeLayout { half_split, interleaved };

/// Rotary positions (arXiv 2104.09864), and how their angles are stretched beyond the training
/// context. Changes values, never a count.
struct RopeSpec {
  double theta = 10000;
  std::int64_t rotary_dim = 0;  ///< leading dimensions of a head that turn; 0: all of them
  RopeLayout layout = RopeLayout::half_split;
  RopeScalingKind scaling = RopeScalingKind::none;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 1;
  std::int64_t original_max_position_embeddings = 0;
  double beta_fast = 32;                ///< yarn (arXiv 2309.00071)
  double beta_slow = 1;                 ///< yarn
  bool truncate = true;                 ///< yarn: whether the ramp's ends are whole dimensions
  double attention_factor = 1;          ///< of cosines and sines: yarn, longrope
  double short_attention_factor = 1;    ///< longrope, within the original context
  double mscale_all_dim = 0;            ///< yarn: MLA multiplies its scale by its square (0: no)
  std::vector<double> short_factors{};  ///< longrope (arXiv 2402.13753), one for each pair
  std::vector<double> long_factors{};   ///< longrope, beyond the original context
};

/// Which keys a query sees besides what causality says: all, the last `size` ones (itself
/// included), those of its own run of `size` positions, or those at most `size` away on both sides.
enum class WindowKind { none, sliding, chunked, centred };

struct WindowSpec {
  WindowKind kind = WindowKind::none;
  std::int64_t size = 0;
  bool operator==(const WindowSpec&) const = default;
};

/// Which weights a norm of queries and keys has: one [head_dim] for all heads, one row for each
/// head, or one over all heads' dimensions together. `none`: no weight at all.
enum class QueryKeyNormScope { each_head, each_head_own_weight, all_heads };
/// Whether queries and keys are normalised before or after they are turned.
enum class QueryKeyNormPlace { before_rotary, after_rotary };

/// ALiBi (arXiv 2108.12409): scores are lowered with distance, by slopes 2^(-8·i/h) for a power of
/// two of heads. Where h is none, the slopes of the power below come first and every other one of
/// the power above follows (BLOOM); or those of the power above, odd ones first (MPT).
enum class AlibiKind { none, power_below, power_above };
/// In what order the reference code adds a slope times a position to the scores: in float32 to
/// scaled scores, or rounded to bfloat16 to scores that are then scaled (Falcon).
enum class AlibiOrder { behind_scale, rounded_before_scale };

struct AlibiSpec {
  AlibiKind kind = AlibiKind::none;
  AlibiOrder order = AlibiOrder::behind_scale;
  double steepest = 8;  ///< the 8 in 2^(-8·i/h)
};

struct QueryKeyNormSpec {
  NormSpec norm;
  QueryKeyNormScope scope = QueryKeyNormScope::each_head;
  QueryKeyNormPlace place = QueryKeyNormPlace::before_rotary;
};

/// Multi-head latent attention (arXiv 2405.04434, 2.1): keys and values are projections of one
/// latent vector a token, and one rotary key serves all heads.
struct LatentAttentionSpec {
  std::int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  bool bias = false;       ///< of the projections into the latent spaces
  double norm_eps = 1e-6;  ///< of the norms of latent vectors, whatever the other norms have
};

/// Llama 4's queries without positions: multiplied by
/// 1 + scale · ln(1 + floor((position + 1) / floor_scale)).
struct TemperatureTuning {
  double floor_scale = 8192;
  double scale = 0.1;
};

/// Heads and sizes of a gated delta layer.
struct GatedDeltaSpec {
  std::int64_t num_key_heads = 0;
  std::int64_t num_value_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t conv_kernel_dim = 0;  ///< of the causal convolution of each channel before it
};

/// Multi-head attention. Grouped-query when there are fewer key-value heads than query heads,
/// multi-query when there is one.
struct AttentionSpec {
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;           ///< d_k, of queries and keys
  std::int64_t value_head_dim = 0;     ///< d_v
  double fixed_scale = 1;              ///< where `scale` is fixed
  double linear_attention_eps = 1e-6;  ///< added to the denominator of linear attention
  double soft_cap = 0;                 ///< scores become cap·tanh(scores / cap); 0: they do not
  double clip_qkv = 0;  ///< queries, keys and values are clamped to ±clip; 0: they are not
  WindowSpec window;
  std::optional<QueryKeyNormSpec> query_key_norm{};
  std::optional<LatentAttentionSpec> latent{};
  std::optional<GatedDeltaSpec> gated_delta{};
  std::optional<RopeSpec> rope{};  ///< where it differs from the model's
  std::optional<TemperatureTuning> temperature{};
  AttentionKind kind = AttentionKind::softmax;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
  SoftmaxPrecision softmax = SoftmaxPrecision::activation;
  AlibiSpec alibi{};
  bool causal = false;
  bool qkv_bias = false;
  bool key_bias = true;  ///< where `qkv_bias`; Whisper's keys have none
  bool output_bias = false;
  bool sinks = false;        ///< one trained score a head takes part in the softmax, with no value
  bool output_gate = false;  ///< the context is multiplied by sigmoid(gate), a projection
  bool rotary = true;        ///< where the model's positions are rotary: whether this layer turns
  bool norm = true;          ///< whether a norm stands before it; ModernBERT's first layer has none
};

/// How a router's scores become weights: softmax over all experts; sigmoid of each; softmax over
/// the chosen ones alone; or PhiMoE's SparseMixer (arXiv 2409.12136, 2 experts only).
enum class RouterScoring { softmax, sigmoid, softmax_of_chosen, sparse_mixer };
/// How groups of experts are ranked before experts are: by their best, or by the sum of their two
/// best.
enum class GroupScore { best, two_best };
/// What a chosen expert's weight multiplies.
enum class ExpertWeighting { output, input };

/// A layer of routed experts, each a feed-forward network of its own, of which a token takes few.
struct ExpertsSpec {
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t intermediate_size = 0;
  RouterScoring scoring = RouterScoring::softmax;
  bool normalise = false;     ///< the chosen weights are divided by their sum
  double scaling_factor = 1;  ///< the weights are multiplied by it in the end
  bool router_bias = false;
  bool correction_bias = false;  ///< a buffer added to the scores for the choice alone
  bool correction_bias_is_parameter = false;
  std::int64_t num_groups = 1;
  std::int64_t chosen_groups = 1;
  GroupScore group_score = GroupScore::best;
  ExpertWeighting weighting = ExpertWeighting::output;
  bool bias = false;                          ///< of the experts' projections
  double jitter_eps = 0.01;                   ///< sparse_mixer
  std::int64_t shared_intermediate_size = 0;  ///< of experts that every token takes; 0: none
  bool shared_gate = false;                   ///< their output is multiplied by sigmoid(w·x)
};

struct FfnSpec {
  FfnKind kind = FfnKind::none;
  std::int64_t intermediate_size = 0;
  ActivationKind activation = ActivationKind::gelu;
  bool bias = false;
  std::optional<ExpertsSpec> experts{};  ///< in the place of one network

  /// As a plain or gated network of `size`, with nothing routed.
  [[nodiscard]] FfnSpec dense(std::int64_t size) const {
    return {kind, size, activation, bias, {}};
  }
};

/// Probabilities of dropping in training; where one is 0 there is no dropout and no mask.
struct DropoutSpec {
  double embedding = 0;
  double attention_probs = 0;
  double attention_output = 0;
  double ffn_activation = 0;
  double ffn_output = 0;
  double final = 0;  ///< after the last norm of a stack
};

/// Products of a cell with its input, and as many with its state.
[[nodiscard]] constexpr std::int64_t gates_of(RecurrentCell cell) noexcept {
  switch (cell) {
    case RecurrentCell::rnn:
      return 1;
    case RecurrentCell::gru:
      return 3;  // reset, update, new
    case RecurrentCell::lstm:
      break;
  }
  return 4;  // input, forget, cell, output
}

/// Vectors that a cell hands on from one position to the next: h, and an LSTM's memory c.
[[nodiscard]] constexpr std::int64_t states_of(RecurrentCell cell) noexcept {
  return cell == RecurrentCell::lstm ? 2 : 1;
}

/// A recurrent layer, one direction, from the first position to the last.
struct RecurrentSpec {
  RecurrentCell cell = RecurrentCell::rnn;
  bool bias = true;  ///< of the input's products, and of the state's
};

/// A convolution over positions, dense over channels: position i of the output is a product of
/// `kernel_size` positions of the input that are `dilation` apart: the last of them is i itself
/// where it is causal, else the middle one. Beyond the ends are zeros.
struct ConvolutionSpec {
  std::int64_t kernel_size = 0;
  std::int64_t dilation = 1;
  bool causal = false;
  bool bias = true;
  std::optional<ActivationKind> activation{};  ///< behind it
  bool operator==(const ConvolutionSpec&) const = default;
};

/// What a layer of a stack has that differs from the stack's other layers.
struct LayerVariant {
  AttentionSpec self_attention;
  FfnSpec ffn;
  std::optional<ConvolutionSpec> convolution{};
};

/// A stack of layers: equal ones, or a sequence of variants.
struct StackSpec {
  std::int64_t num_layers = 0;
  AttentionSpec self_attention;
  std::optional<AttentionSpec> cross_attention{};
  FfnSpec ffn;
  NormPlacement norm_placement = NormPlacement::pre;
  ResidualKind residual = ResidualKind::sequential;
  double residual_multiplier = 1;  ///< of what a sublayer adds
  NormSpec norm;
  std::optional<NormSpec> final_norm{};
  DropoutSpec dropout;
  std::vector<LayerVariant> variants{};         ///< beside `self_attention` and `ffn`, variant 0
  std::vector<std::size_t> variant_of_layer{};  ///< empty: all layers are variant 0
  /// Layers that share one set of weights (ALBERT): of `num_layers`, so many have their own.
  std::optional<std::int64_t> num_weight_groups{};
  // What layers on their own have in the place of attention:
  std::optional<RecurrentSpec> recurrent{};
  std::optional<ConvolutionSpec> convolution{};  ///< of variant 0

  /// Whether no position sees one behind it, so that the layers can go on from what they keep of
  /// the positions before.
  [[nodiscard]] bool causal() const {
    if (recurrent) return true;
    return convolution ? convolution->causal : self_attention.causal;
  }
  [[nodiscard]] std::size_t variant(std::int64_t layer) const {
    return variant_of_layer.empty() ? 0 : variant_of_layer.at(static_cast<std::size_t>(layer));
  }
  [[nodiscard]] const AttentionSpec& attention_of(std::size_t variant) const {
    return variant == 0 ? self_attention : variants.at(variant - 1).self_attention;
  }
  [[nodiscard]] const FfnSpec& ffn_of(std::size_t variant) const {
    return variant == 0 ? ffn : variants.at(variant - 1).ffn;
  }
  [[nodiscard]] const std::optional<ConvolutionSpec>& convolution_of(std::size_t variant) const {
    return variant == 0 ? convolution : variants.at(variant - 1).convolution;
  }
};

/// What a table of positions holds: trained rows, or sines in the first half of each row and their
/// cosines in the second, which are stored and counted all the same.
enum class PositionTable { trained, sinusoidal_halves };

struct PositionSpec {
  PositionKind kind = PositionKind::none;
  std::int64_t max_position_embeddings = 0;  ///< rows of a learned table, or the trained context
  std::int64_t offset = 0;  ///< rows that no token uses (RoBERTa: pad_token_id + 1; OPT: 2)
  PositionTable table = PositionTable::trained;
  bool behind_padding = false;    ///< padding tokens take no position (RoBERTa)
  std::int64_t num_buckets = 0;   ///< relative bias only
  std::int64_t max_distance = 0;  ///< relative bias only
  RopeSpec rope;                  ///< rotary only
};

struct ImageSpec {
  std::int64_t image_size = 0;
  std::int64_t patch_size = 0;
  std::int64_t num_channels = 0;

  [[nodiscard]] std::int64_t num_patches() const noexcept {
    return (image_size / patch_size) * (image_size / patch_size);
  }
};

/// Sound as a log-mel spectrogram, halved in length by two convolutions of width 3 (Whisper).
struct AudioSpec {
  std::int64_t num_mel_bins = 0;
  ActivationKind activation = ActivationKind::gelu;
};

enum class EmbeddingScale { none, sqrt_hidden_size, fixed };

/// How the input becomes hidden states.
struct EmbeddingSpec {
  InputKind input = InputKind::tokens;
  std::int64_t vocab_size = 0;
  std::int64_t type_vocab_size = 0;
  std::optional<NormSpec> norm{};
  EmbeddingScale scale = EmbeddingScale::none;
  double fixed_scale = 1;  ///< where `scale` is fixed
  std::int64_t embedding_size =
      0;  ///< of a token's row, where a projection follows; 0: hidden_size
  bool projection_bias = false;
  /// The projection stands between the word's row and its position (OPT), not behind both.
  bool projects_words_alone = false;
  std::optional<ImageSpec> image{};
  std::optional<AudioSpec> audio{};  ///< of the encoder, in an encoder-decoder
};

/// Projection to the vocabulary.
struct LanguageModelHeadSpec {
  WeightSharing weight = WeightSharing::separate;  ///< shared: the word embedding itself
  bool bias = false;
  bool scale_by_inverse_sqrt_hidden = false;  ///< T5 v1.0 scales the decoder's output first
  /// BERT-like: dense, activation and norm before the projection.
  std::optional<ActivationKind> transform{};
  bool transform_bias = true;
  std::optional<NormSpec> transform_norm{};  ///< else the embedding's
  bool bias_is_buffer = false;               ///< the bias is stored, but is no parameter (BART)
  double logit_scale = 1;
  double soft_cap = 0;          ///< logits become cap·tanh(logits / cap); 0: they do not
  bool float32_logits = false;  ///< the reference code casts logits before its loss
};

enum class ClassifierInput { pooled_token, first_token, last_token, every_token };

/// Projection to labels.
struct ClassifierSpec {
  ClassifierInput input = ClassifierInput::pooled_token;
  std::int64_t num_labels = 0;
  bool bias = true;
  std::optional<ActivationKind> dense{};  ///< a d × d layer with this activation comes first
  double dense_dropout = 0;               ///< before that layer
  bool scores = false;  ///< one label, without a dimension of its own (ELECTRA's discriminator)
  double dropout = 0;   ///< before the projection
};

struct HeadSpec {
  bool projects_out = false;  ///< hidden_size -> embedding_size first, without bias (OPT-350m)
  bool pooler = false;        ///< tanh(dense(hidden state of the first token))
  std::optional<LanguageModelHeadSpec> language_model{};
  std::optional<ClassifierSpec> classifier{};
};

/// What a weight is for: the categories that parameters are summed by.
enum class WeightRole {
  embedding,
  relative_position_bias,
  attention,
  recurrent,
  convolution,
  mlp,
  norm,
  head,
  projector,  ///< from a vision tower to the text model
};

/// A weight of a part that is counted without being in the graph: a vision tower.
struct CountedWeight {
  std::string path;
  std::vector<std::int64_t> shape;
  WeightRole role = WeightRole::embedding;
  std::int64_t repeat = 1;
};

/// What the model's stacks are for, or what kind of layer stands on its own. Decides phases and the
/// words on screen.
enum class ModelKind {
  encoder,
  decoder,
  encoder_decoder,
  attention_layer,
  cross_attention_layer,
  recurrent_layer,
  convolution_layer,
  feed_forward_layer,
};

struct ModelSpec {
  std::string name;
  std::string model_type;    ///< the family, as in config.json
  std::string architecture;  ///< the class that decides heads, as in `architectures`
  std::string torch_dtype;   ///< what the weights are stored in; empty when not said
  ModelKind kind = ModelKind::encoder;
  std::int64_t hidden_size = 0;
  EmbeddingSpec embedding;
  PositionSpec position;
  std::optional<PositionSpec> encoder_position{};  ///< where it differs from the decoder's
  std::optional<StackSpec> encoder{};
  std::optional<StackSpec> decoder{};
  WeightSharing encoder_decoder_embedding = WeightSharing::shared;
  HeadSpec head;
  std::vector<CountedWeight> counted_only;
  std::string quantization;  ///< how the config says that published weights are stored; empty: not

  /// The stack whose sequence length is `seq_len`: the decoder, or else the encoder.
  [[nodiscard]] const StackSpec& main_stack() const { return decoder ? *decoder : *encoder; }

  /// Whether a second sequence is read, of `enc_seq_len`: an encoder's tokens, or the hidden states
  /// that a layer of cross-attention attends to.
  [[nodiscard]] bool reads_two_sequences() const {
    return kind == ModelKind::encoder_decoder || kind == ModelKind::cross_attention_layer;
  }

  /// Whether it is a layer, or some equal ones, without norms, residuals or anything around.
  [[nodiscard]] bool is_layer() const {
    return kind != ModelKind::encoder && kind != ModelKind::decoder &&
           kind != ModelKind::encoder_decoder;
  }

  /// Whether the main stack's layers attend to anything.
  [[nodiscard]] bool has_attention() const {
    return main_stack().self_attention.num_attention_heads > 0;
  }

  /// The positions of the main stack, or of the encoder beside it.
  [[nodiscard]] const PositionSpec& encoder_positions() const {
    return encoder_position ? *encoder_position : position;
  }
};

}  // namespace headroom
