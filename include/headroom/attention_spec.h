// AttentionSpec: how a layer mixes positions, as independent choices: attention of all kinds, state
// spaces, convolutions, and the norms and activations inside them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "headroom/block_connection.h"
#include "headroom/rope_spec.h"

namespace headroom {

/// Placement of a layer's norms. `pre`: x + f(norm(x)); `post`: norm(x + f(x)); `sandwich`:
/// x + norm(f(norm(x))) (Gemma 2); `output`: x + norm(f(x)) (OLMo 2); `residual`: n + f(n) with
/// n = norm(x) (MiniMax).
enum class NormPlacement { pre, post, none, sandwich, output, residual };

enum class NormKind { layer_norm, rms_norm };
/// Multiplier of the normalised values: none, a trained weight w, or 1 + w.
enum class NormWeight { none, plain, one_plus };
/// `gelu` is exact (erf); `gelu_tanh` is the tanh approximation in one kernel; `gelu_new` is the
/// same formula in elementary operations, as Hugging Face runs it. `clamped_swiglu` (gpt-oss) is
/// gated only: (min(max(up, -7), 7) + 1) · g · sigmoid(1.702·g) with g = min(gate, 7).
/// `clamped_silu` (DeepSeek-V4) is gated only: silu(min(gate, 10)) · min(max(up, -10), 10).
/// `quick_gelu` (CLIP): x · sigmoid(1.702·x). `relu_squared`: max(x, 0)² (arXiv 2109.08668).
/// `xielu`: a parabola above 0 and an exponential below, each with a trained constant (arXiv
/// 2411.13010). `identity`: x itself, as a factor of a product. `softplus`: ln(1 + eˣ).
enum class ActivationKind {
  relu,
  relu_squared,
  gelu,
  gelu_tanh,
  gelu_new,
  quick_gelu,
  silu,
  tanh,
  sigmoid,
  clamped_swiglu,
  clamped_silu,
  xielu,
  identity,
  softplus,
};
/// Mixer of a layer's positions. `gated_delta` is linear attention with a decaying state and the
/// delta rule (arXiv 2412.06464); `short_convolution` LFM2's gated convolution; `state_space` Mamba
/// (arXiv 2312.00752) or Mamba-2 (arXiv 2405.21060); `gated_recurrence` the recurrent block of
/// Griffin (arXiv 2402.19427); `weighted_key_value` time mixing of RWKV-4 (arXiv 2305.13048).
/// `time_mix` time mixing of RWKV-5 and RWKV-7 (arXiv 2404.05892, 2503.14456). `matrix`: one matrix
/// in the place of attention (Nemotron-NAS). `none`: the layer has a feed-forward network only
/// (Nemotron-H).
enum class AttentionKind {
  softmax,
  linear,
  gated_delta,
  short_convolution,
  state_space,
  gated_recurrence,
  weighted_key_value,
  time_mix,
  matrix,
  none,
};
enum class AttentionScale { inverse_sqrt_head_dim, none, fixed };
/// Feature map φ of linear attention. `elu_plus_one`: elu(x) + 1 (arXiv 2006.16236, eq. 7); `relu`:
/// max(x, 0) (arXiv 2009.14794, section 4); `exp`: e^x (arXiv 2402.04347, section 4); `softmax`:
/// over the dimensions of each head (arXiv 1812.01243, section 3.2, of its queries; here of keys
/// too, since a running state cannot divide by a sum over later keys).
enum class FeatureMapKind { elu_plus_one, relu, exp, softmax };
/// Type of the softmax in the reference code.
enum class SoftmaxPrecision { activation, float32 };

struct NormSpec {
  NormKind kind = NormKind::layer_norm;
  bool bias = true;
  double eps = 1e-5;
  NormWeight weight = NormWeight::plain;
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

/// Later keys that a query sees in spite of the causal mask. `image`: those of its own image, of
/// which it also sees all earlier ones (Gemma 3); `image_in_window`: those of its own image within
/// its window (Gemma 4); `prompt`: those of the prompt (PaliGemma's prefix-LM, arXiv 2407.07726,
/// section 3.2).
enum class Lookahead { none, image, image_in_window, prompt };

/// Returns whether a query sees later keys of its image.
[[nodiscard]] constexpr bool sees_later_image(Lookahead lookahead) noexcept {
  return lookahead == Lookahead::image || lookahead == Lookahead::image_in_window;
}

/// Rows that a row of a tower attends to: those of its image, or of its window (ImageSpec).
/// `probe`: one query per image attends to the rows of that image.
enum class ImageScope { image, window, probe };

/// Scope of the norm of queries and keys: per head with one weight `[head_dim]` for all heads, per
/// head with a weight row each, or over the dimensions of all heads together.
enum class QueryKeyNormScope { each_head, each_head_own_weight, all_heads };
/// Order of the query-key norm and RoPE.
enum class QueryKeyNormPlace { before_rotary, after_rotary };

/// ALiBi (arXiv 2108.12409): scores decrease linearly with distance, with slopes 2^(-8·i/h) when
/// the number of heads h is a power of two. Otherwise `power_below` takes all slopes of the next
/// lower power and then every other slope of the next higher one (BLOOM); `power_above` takes the
/// slopes of the next higher power, odd ones first (MPT). Attention without a causal mask counts
/// distances to both sides.
enum class AlibiKind { none, power_below, power_above };
/// Order of ALiBi and the softmax scale in the reference code: added in float32 to scaled scores,
/// or rounded to bfloat16 and added before scaling (Falcon).
enum class AlibiOrder { after_scale, rounded_before_scale };

/// Gate on the context, from a projection of the layer's input: a sigmoid (Qwen3-Next) or a
/// softplus (Laguna) of one number for each of its values, or of one per head (Step 3.5, Laguna).
enum class ContextGate { none, sigmoid, softplus, sigmoid_of_head, softplus_of_head };

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
  /// Queries and the gate of the output read the compressed queries twice, behind their norm and
  /// before it (A.X-K2).
  bool rereads_queries = false;
};

/// Temperature tuning: multiplies queries by 1 + scale · ln(1 + floor(position / floor_scale)).
/// Positions count from 1 in Llama 4, in layers without RoPE, and from 0 in Ministral 3.
/// `of_heads`: by scale · ln(position) + bias, two trained numbers per head (Mistral Large 4).
struct TemperatureTuning {
  enum class From { zero, one, of_heads };
  double floor_scale = 8192;
  double scale = 0.1;
  From from = From::one;
};

/// Layer whose indexer chooses the keys: this one, or the last one before it with an indexer
/// (GLM-5.2).
enum class IndexerPlace { here, earlier_layer };

/// End of a head's features.
enum class HeadPart { first, last };

/// Lightning indexer (arXiv 2512.02556, section 2.1): scores every key with heads of its own, and
/// leaves each query the `top_k` best of those that it may see.
struct IndexerSpec {
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
  RopeLayout rope_layout = RopeLayout::half_split;  ///< of its queries and keys beside MLA
  IndexerPlace place = IndexerPlace::here;
  /// Keys of a block. Blocks (MiniMax M3): each head chooses for its share of the attention heads,
  /// by the best key of a block, and always the last `local_blocks` before the query. 1: all heads
  /// together choose single keys.
  std::int64_t block_size = 1;
  std::int64_t local_blocks = 0;
  /// Its queries are a projection of hidden states after this norm, in place of MLA's compressed
  /// queries (Mistral Large 4).
  std::optional<NormSpec> query_norm{};
  std::optional<TemperatureTuning> temperature{};  ///< of its queries
  HeadPart rotary_part = HeadPart::first;  ///< of its queries and keys beside MLA, that RoPE turns
  double key_norm_eps = 1e-6;
  /// Tokens of a pool, whose keys become one, a sum weighted by a softmax of trained gates. A query
  /// reads all tokens of a chosen pool, and always those behind the last whole pool (GLM-5.3). 1:
  /// keys are not pooled.
  std::int64_t pool_size = 1;

  [[nodiscard]] bool pools() const noexcept { return pool_size > 1; }
};

/// Tokens that an entry of compressed keys sums: those of its own window, or half of its features
/// from the window before.
enum class CompressionOverlap { none, previous_window };

/// Compressed keys (DeepSeek-V4): every `rate` tokens leave one entry, a sum of their projections
/// weighted by a softmax over the window of trained gates.
struct KeyCompressionSpec {
  std::int64_t rate = 0;
  CompressionOverlap overlap = CompressionOverlap::none;

  /// Projections of one token: one per window that it contributes to.
  [[nodiscard]] std::int64_t series() const noexcept {
    return overlap == CompressionOverlap::none ? 1 : 2;
  }
};

/// Attention of DeepSeek-V4: one vector per token is key and value of all heads. Queries see a
/// window of tokens and, with `compression`, the compressed keys before it; with an indexer, the
/// best of these. The output projection has two steps: `output_groups` groups of heads are
/// projected to `output_rank` features each, and these to the hidden size.
struct SharedKeyValueSpec {
  std::int64_t q_lora_rank = 0;
  std::int64_t rotary_dim = 0;  ///< trailing dimensions of a head that rotate
  std::int64_t output_groups = 1;
  std::int64_t output_rank = 0;
  std::optional<KeyCompressionSpec> compression{};
};

/// Disentangled attention (arXiv 2006.03654, section 3.1): a table of relative positions, projected
/// to keys and queries of every head, adds scores of contents with positions. The row of a query i
/// and a key j is i - j, in buckets if there are any, plus half the number of rows, clamped to the
/// table.
struct DisentangledSpec {
  bool content_to_position = true;  ///< query i times the position's key
  bool position_to_content = true;  ///< key j times the position's query
  /// The layer's own key and query weights project the table, both of them for any term.
  bool shares_projections = false;
  bool key_bias = true;            ///< of the projection to keys; DeBERTa v1 has none
  std::int64_t num_positions = 0;  ///< rows of the table
  /// Distances of at least half of them share buckets on a logarithmic scale up to `max_distance`;
  /// 0: every distance has its own row.
  std::int64_t num_buckets = 0;
  std::int64_t max_distance = 0;
  std::optional<NormSpec> table_norm{};
};

/// Relative attention of Transformer-XL and XLNet (arXiv 1901.02860, section 3.3; 1906.08237,
/// section 2.5): scores (q + u)·k + (q + v)·r + (q + w)·g, with trained vectors u, v and w per
/// head, a projection r of the sinusoid of the pair's distance, and one of two vectors g, for
/// tokens of one segment and of two.
struct TransformerXlSpec {
  std::int64_t most_distant = 0;  ///< greater distances are clamped to it; 0: none are
  static constexpr std::int64_t kSegments = 2;
};

/// Decay of a gated delta layer's state: one number per head, or one per key dimension of each head
/// (Kimi delta attention, arXiv 2510.26692).
enum class DeltaDecay { each_head, each_key_dim };

/// Sizes and choices of a gated delta layer.
struct GatedDeltaSpec {
  std::int64_t num_key_heads = 0;
  std::int64_t num_value_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t conv_kernel_dim = 0;  ///< of the causal depthwise convolution before it
  DeltaDecay decay = DeltaDecay::each_head;
  /// Rank of the projections of the decay and of the output gate; 0: one projection each.
  std::int64_t projection_rank = 0;
  bool full_rank_gate = false;  ///< one projection for the output gate, whatever the rank (Kimi K3)
  /// Least log of a decay (negative), that is bound·sigmoid(exp(a_log)·(α + dt_bias)) then (Ling
  /// 3, Kimi K3); 0: none, and a decay's log is -exp(a_log)·softplus(α + dt_bias).
  double decay_bound = 0;
  double strength = 1;  ///< multiplies β; 2 allows negative eigenvalues (arXiv 2411.12537)
  ActivationKind gate = ActivationKind::silu;
  std::optional<double> norm_eps{};  ///< of the norm of the output; default: the other norms'
  /// Bytes per value of the state in an engine's cache (mamba_ssm_dtype); 0: the model's type.
  std::int64_t state_value_bytes = 0;
};

/// Gated short convolution (LFM2): out(C · conv(B · x)) with projections B, C and x of the input
/// and a causal depthwise convolution.
struct ShortConvolutionSpec {
  std::int64_t kernel_size = 0;
  bool bias = false;  ///< of the convolution and of both projections
};

/// Recurrent block of Griffin (arXiv 2402.19427, section 2.3): out(act(gate(x)) ·
/// RG-LRU(conv(in(x)))) with projections to `width` channels. The attention heads divide the gates
/// of the RG-LRU.
struct GatedRecurrenceSpec {
  std::int64_t width = 0;
  std::int64_t conv_kernel_dim = 0;
  ActivationKind activation = ActivationKind::gelu_tanh;
};

/// Time mixing with a state matrix per head: `eagle` (RWKV-5, arXiv 2404.05892, section 3.1) adds
/// k·vᵀ to a state with trained decays; `goose` (RWKV-7, arXiv 2503.14456, section 4) also removes
/// along a vector of its own, and computes decays and rates from the input.
enum class TimeMixKind { eagle, goose };

/// Sizes of a time-mixing layer; the ranks are those of RWKV-7's low-rank projections.
struct TimeMixSpec {
  TimeMixKind kind = TimeMixKind::goose;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;  ///< of receptance and key
  std::int64_t value_head_dim = 0;
  std::int64_t decay_rank = 0;
  std::int64_t rate_rank = 0;   ///< of the in-context learning rate
  std::int64_t value_rank = 0;  ///< of the share of the first layer's values; 0: the first layer
  std::int64_t gate_rank = 0;
  double norm_eps = 1e-5;  ///< of the norm of each head's output
};

/// `selective`: Mamba, with a decay for every channel and state (arXiv 2312.00752, algorithm 2).
/// `dual`: Mamba-2, with one decay per head (arXiv 2405.21060, section 7). `lightning`: lightning
/// attention, whose queries, keys and values are C, B and x, with one untrained decay per head and
/// layer (arXiv 2501.08313, section 2.2).
enum class StateSpaceKind { selective, dual, lightning };

/// Order of the norm and of the gate SiLU(z) on a state-space layer's output.
enum class GatedNormOrder { gate_first, norm_first };

/// The norm between the scan and the output projection of a state-space layer.
struct GatedNormSpec {
  NormSpec norm;
  std::int64_t groups = 1;  ///< parts of a row that are normalised separately
  GatedNormOrder order = GatedNormOrder::gate_first;
};

/// Constants that FalconH1 multiplies the projections of a state-space layer by.
struct StateSpaceMultipliers {
  double input = 1;  ///< of the layer's input
  double gate = 1;
  double x = 1;
  double b = 1;
  double c = 1;
  double time_step = 1;
  double output = 1;  ///< of the layer's output
};

/// A state-space layer: a causal depthwise convolution and SiLU, then per head h and token t
/// S_t = exp(Δ_t·A)·S_{t-1} + Δ_t·x_t·B_tᵀ and y_t = S_t·C_t + D·x_t, with a state S
/// `[head_dim, state_size]`. A selective layer's heads are its channels, of one dimension each. A
/// lightning layer has no convolution, and neither Δ nor D.
struct StateSpaceSpec {
  StateSpaceKind kind = StateSpaceKind::dual;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 1;
  std::int64_t num_groups = 1;  ///< of heads that share B and C
  std::int64_t state_size = 0;
  std::int64_t conv_kernel_dim = 0;
  std::int64_t time_step_rank = 0;  ///< selective: width of the projection that Δ comes from
  std::int64_t chunk_size = 0;      ///< tokens per chunk of the reference code's scan; 0: no chunks
  double least_time_step = 0;       ///< clamps Δ
  double greatest_time_step = std::numeric_limits<double>::infinity();
  bool projection_bias = false;  ///< of the input and output projections
  bool convolution_bias = true;
  std::optional<NormSpec> parameter_norm{};  ///< selective: of Δ's projection, B and C each
  std::optional<GatedNormSpec> gated_norm{};
  std::optional<StateSpaceMultipliers> multipliers{};

  [[nodiscard]] std::int64_t inner_size() const noexcept { return num_heads * head_dim; }
};

/// Tokens with global attention where the workload names none, as the class's forward pass chooses
/// them: those before the first separator (the question), or behind it and the next one (a choice).
enum class DefaultGlobalTokens { none, first_token, before_separator, behind_separators };

/// Global attention of some tokens beside a window (Longformer, arXiv 2004.05150, section 3.1): all
/// tokens see them, and they see all tokens, by projections of their own. The others attend in
/// chunks of a window's tokens that overlap by half, which AttentionSpec::block_size gives.
struct GlobalAttentionSpec {
  DefaultGlobalTokens by_default = DefaultGlobalTokens::none;
  std::int64_t separator = 0;  ///< token id
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
  double input_multiplier = 1;         ///< of the layer's input (FalconH1)
  double key_multiplier = 1;           ///< of the keys
  double value_multiplier = 1;         ///< of the values
  double output_multiplier = 1;        ///< of the output
  double residual_multiplier = 1;      ///< of the residual that the output is added to (MiniMax)
  double clip_qkv = 0;                 ///< clamps queries, keys and values to ±clip; 0: no clamp
  WindowSpec window;
  Lookahead lookahead = Lookahead::none;  ///< of causal attention
  /// The reference code attends in blocks of so many queries to three blocks of keys, under a
  /// window of less than a block (LongT5); with `global`, half a window, in chunks of two such
  /// blocks; 0: to all keys.
  std::int64_t block_size = 0;
  std::optional<GlobalAttentionSpec> global{};
  /// Tokens that leave one transient global token, which all tokens see beside their window
  /// (LongT5, arXiv 2112.07916, section 3.1.2); 0: there are none.
  std::int64_t global_block_size = 0;
  ImageScope image_scope = ImageScope::image;
  std::optional<QueryKeyNormSpec> query_key_norm{};
  std::optional<DisentangledSpec> disentangled{};
  std::optional<TransformerXlSpec> transformer_xl{};
  bool gates_position_bias = false;  ///< multiplies it by a gate of each query and head (WavLM)
  std::optional<LatentAttentionSpec> latent{};
  /// Multi-matrix factorisation attention (MFA, arXiv 2412.19255, section 3): features between the
  /// two projections of queries, with a norm; 0: one projection. Other attentions have their own.
  std::int64_t query_rank = 0;
  std::optional<GatedDeltaSpec> gated_delta{};
  std::optional<ShortConvolutionSpec> short_convolution{};
  std::optional<GatedRecurrenceSpec> gated_recurrence{};
  std::int64_t weighted_key_value_width = 0;  ///< channels of a weighted_key_value layer
  std::optional<TimeMixSpec> time_mix{};
  /// The mixer of a `state_space` layer; beside softmax attention, both read the layer's input and
  /// their outputs are added (FalconH1).
  std::optional<StateSpaceSpec> state_space{};
  std::optional<RopeSpec> rope{};  ///< where it differs from the model's RoPE
  std::optional<TemperatureTuning> temperature{};
  AttentionKind kind = AttentionKind::softmax;
  FeatureMapKind feature_map = FeatureMapKind::elu_plus_one;  ///< of linear attention
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
  SoftmaxPrecision softmax = SoftmaxPrecision::activation;
  AlibiSpec alibi{};
  bool causal = false;
  bool qkv_bias = false;
  bool key_bias = true;  ///< with `qkv_bias`; false: keys have no bias (Whisper)
  bool output_bias = false;
  /// false: a layer by itself ends with the heads' context, `[batch, seq, heads·value_head_dim]`.
  bool output_projection = true;
  bool sinks = false;  ///< one trained score per head joins the softmax, without a value
  ContextGate output_gate = ContextGate::none;
  bool rotary = true;  ///< with rotary positions: false for layers without RoPE
  /// The reference code repeats keys and values for every query head before it caches them.
  bool caches_repeated_heads = false;
  bool norm = true;  ///< false: no norm before it (ModernBERT's first layer)
  /// The norm before it is gated: y·σ(W_2·SiLU(W_1·y)), with so many features between (A.X-K2); 0:
  /// no gate.
  std::int64_t norm_gate_rank = 0;
  /// Placement of the layer's norms where it differs from the stack's (OLMo hybrid).
  std::optional<NormPlacement> norm_placement{};
  std::vector<BlockConnection> connections{};  ///< that end in front of the layer, in order
  bool value_is_key = false;  ///< V is the key projection before its norm and RoPE (Gemma 4)
  /// Reads K and V of the last earlier layer with its kind of window; projects only queries.
  bool shares_key_values = false;
  std::optional<NormSpec> value_norm{};    ///< of each value head
  std::optional<NormSpec> context_norm{};  ///< of all heads' context together (BitNet)
  std::optional<IndexerSpec> indexer{};
  std::optional<SharedKeyValueSpec> shared_key_value{};

  // Special members are compiled once (src/base/special_members.cpp).
  AttentionSpec();
  AttentionSpec(const AttentionSpec& other);
  AttentionSpec(AttentionSpec&& other) noexcept;
  AttentionSpec& operator=(const AttentionSpec& other);
  AttentionSpec& operator=(AttentionSpec&& other) noexcept;
  ~AttentionSpec();
};

}  // namespace headroom
