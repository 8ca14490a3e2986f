// ModelSpec: a model as independent choices. A family (bert, llama, …) is a short function from
// config.json to a ModelSpec; one builder turns any ModelSpec into a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

enum class NormKind { layer_norm, rms_norm };
/// Multiplier of the normalised values: none, a trained weight w, or 1 + w.
enum class NormWeight { none, plain, one_plus };
/// Placement of a layer's norms. `pre`: x + f(norm(x)); `post`: norm(x + f(x)); `sandwich`:
/// x + norm(f(norm(x))) (Gemma 2); `output`: x + norm(f(x)) (OLMo 2).
enum class NormPlacement { pre, post, none, sandwich, output };
/// Order of attention f and feed-forward network g. Sequential: x' = x + f(x), y = x' + g(x').
/// Parallel: x + f(norm(x)) + g(norm(x)), with one norm for both or one each.
enum class ResidualKind { sequential, parallel_one_norm, parallel_two_norms };
/// `gelu` is exact (erf); `gelu_tanh` is the tanh approximation in one kernel; `gelu_new` is the
/// same formula in elementary operations, as Hugging Face runs it. `clamped_swiglu` (gpt-oss) is
/// gated only: (min(max(up, -7), 7) + 1) · g · sigmoid(1.702·g) with g = min(gate, 7).
enum class ActivationKind { relu, gelu, gelu_tanh, gelu_new, silu, tanh, sigmoid, clamped_swiglu };
/// `gated_delta` is linear attention with a decaying state and the delta rule (arXiv 2412.06464).
enum class AttentionKind { softmax, linear, gated_delta };
/// Plain: down(act(up(x))). Gated: down(act(gate(x)) · up(x)).
enum class FfnKind { none, plain, gated };
/// Cell of a recurrent layer, which computes the next state h from the input and the last state.
/// `rnn`: tanh of the sum of both GEMMs; `lstm`: a memory cell and three gates (Hochreiter &
/// Schmidhuber 1997, doi 10.1162/neco.1997.9.8.1735, with the forget gate of Gers et al. 2000);
/// `gru`: two gates (Cho et al. 2014, arXiv 1406.1078). Gates and their order follow torch.nn.RNN,
/// LSTM and GRU.
enum class RecurrentCell { rnn, lstm, gru };
/// Position encoding.
enum class PositionKind { none, learned, sinusoidal, rotary, relative_bias };
enum class AttentionScale { inverse_sqrt_head_dim, none, fixed };
/// Type of the softmax in the reference code.
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
/// Dimensions of a head that RoPE rotates as a pair: i and i + half, or 2·i and 2·i + 1.
enum class RopeLayout { half_split, interleaved };

/// Rotary position embedding (arXiv 2104.09864) and its context extension. Changes values, never a
/// count.
struct RopeSpec {
  double theta = 10000;
  std::int64_t rotary_dim = 0;  ///< leading dimensions of a head that rotate; 0: all
  RopeLayout layout = RopeLayout::half_split;
  RopeScalingKind scaling = RopeScalingKind::none;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 1;
  std::int64_t original_max_position_embeddings = 0;
  double beta_fast = 32;              ///< yarn (arXiv 2309.00071)
  double beta_slow = 1;               ///< yarn
  bool truncate = true;               ///< yarn: rounds the ramp's ends to whole dimensions
  double attention_factor = 1;        ///< multiplies cos and sin: yarn, longrope
  double short_attention_factor = 1;  ///< longrope, within the original context
  double mscale_all_dim = 0;  ///< yarn: MLA multiplies its softmax scale by the square (0: no)
  std::vector<double> short_factors{};  ///< longrope (arXiv 2402.13753), one per pair
  std::vector<double> long_factors{};   ///< longrope, beyond the original context
};

/// Keys that a query sees, in addition to the causal mask. `none`: all; `sliding`: the last `size`,
/// itself included; `chunked`: its own chunk of `size` positions; `centred`: those at most `size`
/// positions away on either side.
enum class WindowKind { none, sliding, chunked, centred };

struct WindowSpec {
  WindowKind kind = WindowKind::none;
  std::int64_t size = 0;
  bool operator==(const WindowSpec&) const = default;
};

/// Scope of the norm of queries and keys: per head with one weight `[head_dim]` for all heads, per
/// head with a weight row each, or over the dimensions of all heads together.
enum class QueryKeyNormScope { each_head, each_head_own_weight, all_heads };
/// Order of the query-key norm and RoPE.
enum class QueryKeyNormPlace { before_rotary, after_rotary };

/// ALiBi (arXiv 2108.12409): scores decrease linearly with distance, with slopes 2^(-8·i/h) when
/// the number of heads h is a power of two. Otherwise `power_below` takes all slopes of the next
/// lower power and then every other slope of the next higher one (BLOOM); `power_above` takes the
/// slopes of the next higher power, odd ones first (MPT).
enum class AlibiKind { none, power_below, power_above };
/// Order of ALiBi and the softmax scale in the reference code: added in float32 to scaled scores,
/// or rounded to bfloat16 and added before scaling (Falcon).
enum class AlibiOrder { after_scale, rounded_before_scale };

struct AlibiSpec {
  AlibiKind kind = AlibiKind::none;
  AlibiOrder order = AlibiOrder::after_scale;
  double steepest = 8;  ///< the 8 in 2^(-8·i/h)
};

struct QueryKeyNormSpec {
  NormSpec norm;
  QueryKeyNormScope scope = QueryKeyNormScope::each_head;
  QueryKeyNormPlace place = QueryKeyNormPlace::before_rotary;
};

/// Multi-head latent attention (MLA; arXiv 2405.04434, section 2.1): keys and values are
/// projections of one latent vector per token; all heads share one rotary key.
struct LatentAttentionSpec {
  std::int64_t q_lora_rank = 0;  ///< 0: queries are not compressed
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  bool bias = false;       ///< of the down-projections
  double norm_eps = 1e-6;  ///< of the norms of latent vectors, independent of the other norms
};

/// Llama 4's temperature tuning of layers without RoPE: multiplies queries by
/// 1 + scale · ln(1 + floor((position + 1) / floor_scale)).
struct TemperatureTuning {
  double floor_scale = 8192;
  double scale = 0.1;
};

/// Sizes of a gated delta layer.
struct GatedDeltaSpec {
  std::int64_t num_key_heads = 0;
  std::int64_t num_value_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t conv_kernel_dim = 0;  ///< of the causal depthwise convolution before it
};

/// Multi-head attention; grouped-query (GQA) with fewer key-value heads than query heads,
/// multi-query (MQA) with one.
struct AttentionSpec {
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;           ///< d_k, of queries and keys
  std::int64_t value_head_dim = 0;     ///< d_v
  double fixed_scale = 1;              ///< used when `scale` is fixed
  double linear_attention_eps = 1e-6;  ///< added to the denominator of linear attention
  double soft_cap = 0;                 ///< scores become cap·tanh(scores / cap); 0: no cap
  double clip_qkv = 0;                 ///< clamps queries, keys and values to ±clip; 0: no clamp
  WindowSpec window;
  std::optional<QueryKeyNormSpec> query_key_norm{};
  std::optional<LatentAttentionSpec> latent{};
  std::optional<GatedDeltaSpec> gated_delta{};
  std::optional<RopeSpec> rope{};  ///< where it differs from the model's RoPE
  std::optional<TemperatureTuning> temperature{};
  AttentionKind kind = AttentionKind::softmax;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
  SoftmaxPrecision softmax = SoftmaxPrecision::activation;
  AlibiSpec alibi{};
  bool causal = false;
  bool qkv_bias = false;
  bool key_bias = true;  ///< with `qkv_bias`; false: keys have no bias (Whisper)
  bool output_bias = false;
  bool sinks = false;        ///< one trained score per head joins the softmax, without a value
  bool output_gate = false;  ///< multiplies the context by sigmoid of a projection
  bool rotary = true;        ///< with rotary positions: false for layers without RoPE
  bool norm = true;          ///< false: no norm before it (ModernBERT's first layer)
};

/// Router scores to expert weights: softmax over all experts, sigmoid of each, softmax over the
/// selected ones, or PhiMoE's SparseMixer (arXiv 2409.12136; 2 experts only).
enum class RouterScoring { softmax, sigmoid, softmax_of_chosen, sparse_mixer };
/// Rank of a group of experts in group-limited routing: its best score, or the sum of its two best.
enum class GroupScore { best, two_best };
/// Operand that a selected expert's weight multiplies.
enum class ExpertWeighting { output, input };

/// Mixture of experts: each token is routed to a few of many feed-forward networks.
struct ExpertsSpec {
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t intermediate_size = 0;
  RouterScoring scoring = RouterScoring::softmax;
  bool normalise = false;     ///< divides the selected weights by their sum
  double scaling_factor = 1;  ///< multiplies the final weights
  bool router_bias = false;
  bool correction_bias = false;  ///< a buffer added to the scores for top-k only
  bool correction_bias_is_parameter = false;
  std::int64_t num_groups = 1;
  std::int64_t chosen_groups = 1;
  GroupScore group_score = GroupScore::best;
  ExpertWeighting weighting = ExpertWeighting::output;
  bool bias = false;                          ///< of the experts' projections
  double jitter_eps = 0.01;                   ///< sparse_mixer
  std::int64_t shared_intermediate_size = 0;  ///< inner width of the shared experts; 0: none
  bool shared_gate = false;                   ///< multiplies their output by sigmoid(w·x)
};

struct FfnSpec {
  FfnKind kind = FfnKind::none;
  std::int64_t intermediate_size = 0;
  ActivationKind activation = ActivationKind::gelu;
  bool bias = false;
  std::optional<ExpertsSpec> experts{};  ///< in place of one network

  /// The dense network of inner width `size`, without experts.
  [[nodiscard]] FfnSpec dense(std::int64_t size) const {
    return {kind, size, activation, bias, {}};
  }
};

/// Dropout probabilities in training; 0: no dropout and no mask.
struct DropoutSpec {
  double embedding = 0;
  double attention_probs = 0;
  double attention_output = 0;
  double ffn_activation = 0;
  double ffn_output = 0;
  double final = 0;  ///< after the final norm of a stack
};

/// Gates of a cell: as many GEMMs with the input and as many with the state.
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

/// State vectors that a cell carries to the next position: h, and an LSTM's memory c.
[[nodiscard]] constexpr std::int64_t states_of(RecurrentCell cell) noexcept {
  return cell == RecurrentCell::lstm ? 2 : 1;
}

/// A unidirectional recurrent layer.
struct RecurrentSpec {
  RecurrentCell cell = RecurrentCell::rnn;
  bool bias = true;  ///< of both the input and the state GEMMs
};

/// A convolution over positions, dense over channels, zero-padded. Output position i reads
/// `kernel_size` input positions `dilation` apart; i is the last of them in a causal convolution,
/// the middle one otherwise.
struct ConvolutionSpec {
  std::int64_t kernel_size = 0;
  std::int64_t dilation = 1;
  bool causal = false;
  bool bias = true;
  std::optional<ActivationKind> activation{};  ///< after it
  bool operator==(const ConvolutionSpec&) const = default;
};

/// Choices that may differ between the layers of one stack.
struct LayerVariant {
  AttentionSpec self_attention;
  FfnSpec ffn;
  std::optional<ConvolutionSpec> convolution{};
};

/// A stack of layers: all equal, or a sequence of variants.
struct StackSpec {
  std::int64_t num_layers = 0;
  AttentionSpec self_attention;
  std::optional<AttentionSpec> cross_attention{};
  FfnSpec ffn;
  NormPlacement norm_placement = NormPlacement::pre;
  ResidualKind residual = ResidualKind::sequential;
  double residual_multiplier = 1;  ///< scales each sublayer's output
  NormSpec norm;
  std::optional<NormSpec> final_norm{};
  DropoutSpec dropout;
  std::vector<LayerVariant> variants{};  ///< 1, 2, …; variant 0 is `self_attention` and `ffn`
  std::vector<std::size_t> variant_of_layer{};  ///< empty: all layers are variant 0
  /// Distinct sets of layer weights where layers share them (ALBERT).
  std::optional<std::int64_t> num_weight_groups{};
  // In place of attention, for models of a single layer kind:
  std::optional<RecurrentSpec> recurrent{};
  std::optional<ConvolutionSpec> convolution{};  ///< of variant 0

  /// True if no position sees a later one, so that a pass can continue from cached state.
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

/// Contents of a position table: trained rows, or sines in the first half of each row and cosines
/// in the second. Both are stored and counted.
enum class PositionTable { trained, sinusoidal_halves };

struct PositionSpec {
  PositionKind kind = PositionKind::none;
  std::int64_t max_position_embeddings = 0;  ///< rows of a learned table, or trained context
  std::int64_t offset = 0;  ///< unused leading rows (RoBERTa: pad_token_id + 1; OPT: 2)
  PositionTable table = PositionTable::trained;
  bool skips_padding = false;     ///< padding tokens advance no position (RoBERTa)
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

/// Audio as a log-mel spectrogram; two convolutions of width 3 halve its length (Whisper).
struct AudioSpec {
  std::int64_t num_mel_bins = 0;
  ActivationKind activation = ActivationKind::gelu;
};

enum class EmbeddingScale { none, sqrt_hidden_size, fixed };

/// Input embedding.
struct EmbeddingSpec {
  InputKind input = InputKind::tokens;
  std::int64_t vocab_size = 0;
  std::int64_t type_vocab_size = 0;
  std::optional<NormSpec> norm{};
  EmbeddingScale scale = EmbeddingScale::none;
  double fixed_scale = 1;           ///< used when `scale` is fixed
  std::int64_t embedding_size = 0;  ///< word width before a projection; 0: hidden_size
  bool projection_bias = false;
  /// Projects the word embedding before the position is added (OPT), not after.
  bool projects_before_positions = false;
  std::optional<ImageSpec> image{};
  std::optional<AudioSpec> audio{};  ///< of the encoder, in an encoder-decoder
};

/// Language-model head: projection to the vocabulary.
struct LanguageModelHeadSpec {
  WeightSharing weight = WeightSharing::separate;  ///< shared: tied to the word embedding
  bool bias = false;
  bool scale_by_inverse_sqrt_hidden = false;  ///< T5 v1.0 scales the decoder's output first
  /// BERT-like: dense, activation and norm before the projection.
  std::optional<ActivationKind> transform{};
  bool transform_bias = true;
  std::optional<NormSpec> transform_norm{};  ///< default: the embedding's norm
  bool bias_is_buffer = false;               ///< the bias is a buffer, not a parameter (BART)
  double logit_scale = 1;
  double soft_cap = 0;          ///< logits become cap·tanh(logits / cap); 0: no cap
  bool float32_logits = false;  ///< the reference code casts logits to float32 before its loss
};

enum class ClassifierInput { pooled_token, first_token, last_token, every_token };

/// Classification head: projection to labels.
struct ClassifierSpec {
  ClassifierInput input = ClassifierInput::pooled_token;
  std::int64_t num_labels = 0;
  bool bias = true;
  std::optional<ActivationKind> dense{};  ///< a dense d × d layer with this activation comes first
  double dense_dropout = 0;               ///< before that layer
  bool scores = false;  ///< one label, without a label dimension (ELECTRA's discriminator)
  double dropout = 0;   ///< before the projection
};

struct HeadSpec {
  bool projects_out = false;  ///< hidden_size -> embedding_size first, without bias (OPT-350m)
  bool pooler = false;        ///< tanh(dense(hidden state of the first token))
  std::optional<LanguageModelHeadSpec> language_model{};
  std::optional<ClassifierSpec> classifier{};
};

/// Category that parameters are summed by.
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

/// A weight that is counted, but not in the graph (vision tower).
struct CountedWeight {
  std::string path;
  std::vector<std::int64_t> shape;
  WeightRole role = WeightRole::embedding;
  std::int64_t repeat = 1;
};

/// Stacks of the model, or the kind of a single-layer model. Decides the legal phases and the words
/// on screen.
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
  std::string architecture;  ///< the class that decides the head, as in `architectures`
  std::string torch_dtype;   ///< type of the stored weights; empty if unspecified
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
  std::string quantization;  ///< quantisation method of the published weights; empty: none

  /// The stack whose sequence length is `seq_len`: the decoder, else the encoder.
  [[nodiscard]] const StackSpec& main_stack() const { return decoder ? *decoder : *encoder; }

  /// True if the model reads a second sequence of `enc_seq_len`: encoder tokens, or the hidden
  /// states that a cross-attention layer attends to.
  [[nodiscard]] bool reads_two_sequences() const {
    return kind == ModelKind::encoder_decoder || kind == ModelKind::cross_attention_layer;
  }

  /// True for bare layers without norms, residuals, embedding or head.
  [[nodiscard]] bool is_layer() const {
    return kind != ModelKind::encoder && kind != ModelKind::decoder &&
           kind != ModelKind::encoder_decoder;
  }

  /// True if the main stack's layers have attention.
  [[nodiscard]] bool has_attention() const {
    return main_stack().self_attention.num_attention_heads > 0;
  }

  /// The encoder's positions; by default those of the main stack.
  [[nodiscard]] const PositionSpec& encoder_positions() const {
    return encoder_position ? *encoder_position : position;
  }
};

}  // namespace headroom
