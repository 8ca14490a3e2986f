// Op: one operator of a model, a closed variant of small structs. An op carries its sizes as Exprs,
// so counting it needs nothing else. No visitor has a catch-all branch, so a new op does not
// compile until it is counted, run and sharded.
#pragma once

#include <variant>

#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "headroom/visit.h"

namespace headroom {

/// Sizes of one attention: Q `[batch, heads, queries, head_dim]`, K
/// `[batch, kv_heads, keys, head_dim]`, V `[batch, kv_heads, keys, value_head_dim]`.
struct AttentionShape {
  Expr batch;
  Expr heads;
  Expr kv_heads;
  Expr head_dim;
  Expr value_head_dim;
  Expr queries;
  Expr keys;

  /// Elements of each operand, of the scores `[batch, heads, queries, keys]` and of the context.
  [[nodiscard]] Expr query_elements() const { return batch * queries * heads * head_dim; }
  [[nodiscard]] Expr key_elements() const { return batch * keys * kv_heads * head_dim; }
  [[nodiscard]] Expr value_elements() const { return batch * keys * kv_heads * value_head_dim; }
  [[nodiscard]] Expr score_elements() const { return batch * heads * queries * keys; }
  [[nodiscard]] Expr context_elements() const { return batch * queries * heads * value_head_dim; }
};

/// Strided view of a tensor `[rows, row_width]`: `heads` heads of `head_dim` elements per row,
/// starting at element `first`.
struct HeadRows {
  Expr rows;
  Expr row_width;
  Expr first;
  Expr heads;
  Expr head_dim;

  [[nodiscard]] Expr elements() const { return rows * heads * head_dim; }
};

/// Source of keys and values: the projections of this pass, or the KV-cache.
enum class KeySource { projections, cache };
enum class Masking { none, causal };
/// Bias added to the scores: a tensor `[heads, queries, keys]` from a table of relative positions
/// (T5) or `[batch, heads, queries, keys]` from contents and positions (DeBERTa), or a slope per
/// head times the key position (ALiBi).
enum class ScoreBias { none, relative_position, alibi };
/// Where V is stored: after K, or inside the MLA latent that serves as K.
enum class ValuePlace { after_keys, inside_keys };

/// Mask on the scores besides causality and windows.
enum class KeyMask { none, indexer };

/// Adjustments of the attention scores other than the mask, before and inside the softmax.
struct ScoreShaping {
  ScoreBias bias = ScoreBias::none;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
  double fixed_scale = 1;  ///< used when `scale` is fixed
  double soft_cap = 0;     ///< scores become cap·tanh(scores / cap); 0: no cap
  bool sinks = false;      ///< one trained score per head joins the softmax, without a value
  AlibiSpec alibi{};
  WindowSpec window;
  /// The last input `[batch, queries, keys]` masks all keys but those that an indexer chose.
  KeyMask mask = KeyMask::none;
};

/// Source of the positions that are added to an embedding.
enum class AddedPositions { none, learned, sinusoidal };

/// Sum of rows looked up in the word, position and token-type tables.
/// `[batch, seq]` -> `[batch, seq, width]`
struct TokenEmbedding {
  Expr tokens;   ///< b·s
  Expr seq_len;  ///< distinct positions: s
  Expr width;
  AddedPositions positions = AddedPositions::none;
  Expr type_rows;  ///< rows of the token-type table; zero: no table
  EmbeddingScale scale = EmbeddingScale::none;
  double fixed_scale = 1;  ///< used when `scale` is fixed
};

/// Adds one row of a position table to every token, in place. `[batch, seq, width]`
struct PositionEmbedding {
  Expr tokens;
  Expr seq_len;
  Expr width;
};

/// Convolution over positions, dense over channels, zero-padded. A causal one pads
/// (kernel - 1)·dilation in front; otherwise half on either side, the odd one at the end.
/// `[batch, in_channels, stride·length]` or `[batch, stride·length, in_channels]` ->
/// `[batch, length, out_channels]`
struct Convolution {
  Expr batch;
  Expr in_channels;
  Expr out_channels;
  Expr kernel;
  Expr stride;
  Expr length;                  ///< of the output
  bool channels_first = false;  ///< of the input
  Expr dilation = Integer{1};   ///< input positions from one tap to the next
  Masking masking = Masking::none;
  bool bias = true;
  KeySource past = KeySource::projections;  ///< cache: prepends the cached last inputs
  Expr group_channels{};  ///< input channels of an output channel, in a grouped one; zero: all

  [[nodiscard]] Expr channels_read() const {
    return group_channels.is_zero() ? in_channels : group_channels;
  }
  /// Earlier inputs that a causal output position reads.
  [[nodiscard]] Expr reach() const { return (kernel - Integer{1}) * dilation; }
};

/// A recurrent layer after its input GEMMs, position by position: h_t from h_{t-1} and
/// x_t = W_ih·input + b_ih, with W_hh·h_{t-1} + b_hh for every gate. Inputs:
/// `[batch, seq, gates·width]`, and the state `[batch, states·width]` if cached. ->
/// `[batch, seq, width]`
struct Recurrence {
  RecurrentCell cell = RecurrentCell::rnn;
  Expr batch;
  Expr seq_len;  ///< sequential steps
  Expr width;
  bool bias = false;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state

  [[nodiscard]] Expr gates() const { return Integer{gates_of(cell)}; }
  [[nodiscard]] Expr state_elements() const { return batch * Integer{states_of(cell)} * width; }
  [[nodiscard]] Expr output_elements() const { return batch * seq_len * width; }
};

/// Linear projection of image patches; prepends trained tokens and adds positions.
/// `[batch, channels, height, width]` -> `[batch, prefix + patches, width]`
struct PatchEmbedding {
  Expr batch;
  Expr patches;         ///< per image
  Expr patch_elements;  ///< channels · patch_size²
  Expr width;
  Expr prefix = Integer{1};  ///< trained tokens: the class token and others
};

/// Looks up a bias for every pair in a table by bucketed distance. -> `[heads, queries, keys]`
struct RelativePositionBias {
  Expr heads;
  Expr queries;
  Expr keys;
};

/// Copies a trained table of relative positions, which every layer reads (DeBERTa).
/// -> `[rows, width]`
struct PositionTableRows {
  Expr rows;
  Expr width;
};

/// Scores of contents with relative positions (DisentangledSpec). Projects the table
/// `[positions, width]` to keys and queries of every head, multiplies the layer's queries and keys
/// with them, and selects each pair's score by its distance. Inputs: rows `[Q | K | V]` and the
/// table. -> `[batch, heads, queries, keys]`
struct DisentangledBias {
  DisentangledSpec spec;
  AttentionShape shape;
  Expr positions;
  Expr width;
  double scale = 1;  ///< of the scores

  /// Terms of the scores, one GEMM per head each.
  [[nodiscard]] Integer terms() const {
    return (spec.content_to_position ? 1 : 0) + (spec.position_to_content ? 1 : 0);
  }
  /// Projections of the table.
  [[nodiscard]] Integer projections() const { return spec.shares_projections ? 2 : terms(); }
};

/// `[rows, in_features]` · `[in_features, out_features]` + bias
struct Linear {
  Expr rows;
  Expr in_features;
  Expr out_features;
  bool bias = false;
  Expr row_width{};  ///< stride between input rows; zero: in_features
};

/// Normalisation over the last dimension. `[rows, width]` -> `[rows, width]`
struct Norm {
  NormSpec spec;
  Expr rows;
  Expr width;
  Expr row_width{};  ///< stride between rows; zero: width
};

/// Norm of each head, or of all heads of a row together, in place.
struct HeadNorm {
  NormSpec spec;
  QueryKeyNormScope scope = QueryKeyNormScope::each_head;
  HeadRows heads;
};

/// Angles of a rotation: a position's, or their negatives, which undo it.
enum class RotaryDirection { forward, inverse };

/// Rotary position embedding (RoPE) in place: rotates `rotary_dim` dimensions of each head,
/// starting at `first_dim`.
struct Rotary {
  HeadRows heads;
  Expr first_dim;
  Expr rotary_dim;
  Expr seq_len;
  RopeSpec rope;
  RotaryDirection direction = RotaryDirection::forward;

  [[nodiscard]] Expr elements() const { return heads.rows * heads.heads * rotary_dim; }
  /// Elements of the cos table `[seq, rotary_dim]`; the sin table has as many.
  [[nodiscard]] Expr table_elements() const { return seq_len * rotary_dim; }
};

/// Clamps elements to ±limit, in place.
struct Clamp {
  Expr elements;
  double limit = 0;
};

/// Multiplies each query by a factor that grows with its position (TemperatureTuning), in place.
struct TemperatureScale {
  HeadRows heads;
  Expr seq_len;
  TemperatureTuning tuning;
};

/// Assembles Q, K and V of multi-head attention from MLA's projections. Each head's key is its
/// non-rotary part followed by the shared rotary key. Inputs: Q `[rows, heads·(nope + rope)]`, K
/// and V
/// `[rows, heads·(nope + value)]`, and latent rows that end with the rotary key. ->
/// `[rows, heads·(nope + rope) | heads·(nope + rope) | heads·value]`
struct LatentConcat {
  Expr rows;
  Expr heads;
  Expr nope_dim;
  Expr rope_dim;
  Expr value_dim;
  Expr latent_dim;  ///< elements before the rotary key
};

/// One GEMM per head, `[rows, heads, in]` -> `[rows, heads, out]`, with that head's slice of MLA's
/// up-projection. Maps queries into the latent space or contexts out of it. The last `kept`
/// dimensions of a head are not multiplied, but copied after the result.
struct HeadLinear {
  enum class Direction { query_to_latent, context_from_latent };
  Direction direction = Direction::query_to_latent;
  Expr rows;
  Expr heads;
  Expr in_features;
  Expr out_features;
  Expr kept;
};

/// One GEMM per group of heads, `[rows, groups, in]` -> `[rows, groups, out]`, with a weight
/// `[groups·out, in]`: the first step of DeepSeek-V4's output projection.
struct GroupedLinear {
  Expr rows;
  Expr groups;
  Expr in_features;   ///< per group
  Expr out_features;  ///< per group
};

/// Sums every `rate` tokens to one entry, weighted by a softmax over gates plus a trained bias per
/// place (KeyCompressionSpec). Inputs: rows `[key | gate]` of `series·width` features each, and the
/// state of the incomplete window, if cached. -> `[batch, entries, width]`
struct KeyCompression {
  Expr batch;
  Expr tokens;   ///< new tokens per sequence
  Expr entries;  ///< windows that they complete
  Expr rate;
  Expr series;
  Expr width;

  /// Elements that the sums read.
  [[nodiscard]] Expr summed() const { return batch * entries * rate * series * width; }
};

/// Scores of an indexer: Σ over its heads of w·ReLU(q·k) (arXiv 2512.02556, eq. 1). Inputs: queries
/// `[rows, heads·head_dim]`, one key per position `[batch, keys, head_dim]`, and the heads' weights
/// `[rows, heads]`. -> `[batch, queries, keys]`
struct IndexScores {
  Expr batch;
  Expr heads;
  Expr head_dim;
  Expr queries;
  Expr keys;
  KeySource source = KeySource::projections;

  [[nodiscard]] Expr pairs() const { return batch * queries * keys; }
};

/// Chooses the `top_k` best keys of each query among those before it, in place: 0 for them, the
/// lowest number for all others. A key covers `rate` tokens. `[batch, queries, keys]`
struct KeySelect {
  Expr batch;
  Expr queries;
  Expr keys;
  std::int64_t top_k = 0;
  std::int64_t rate = 1;
  KeySource source = KeySource::projections;

  [[nodiscard]] Expr pairs() const { return batch * queries * keys; }
};

/// Weights of hyper-connections from their logits, in place: sigmoids of the sum before a sublayer
/// and the additions after it, and a matrix that Sinkhorn's algorithm makes doubly stochastic
/// (HyperConnectionSpec). `[rows, (2 + streams)·streams]`; after the last layer, the sum only:
/// `[rows, streams]`
struct StreamWeights {
  enum class Site { sublayer, last_sum };
  Site site = Site::sublayer;
  Expr rows;
  Expr streams;
  std::int64_t sinkhorn_iterations = 0;
};

/// A step on the residual streams of hyper-connections. `expand` copies hidden states
/// `[rows, width]` to `[rows, streams, width]`. `sum` takes streams and weights to `[rows, width]`.
/// `update` takes streams, a sublayer's output and weights to the next streams, in place.
struct StreamStep {
  enum class Kind { expand, sum, update };
  Kind kind = Kind::expand;
  Expr rows;
  Expr streams;
  Expr width;

  [[nodiscard]] Expr elements() const { return rows * streams * width; }
};

/// Appends the new keys and values to the KV-cache.
struct KvCacheAppend {
  Expr elements;
  HeadRows kept;      ///< view of K and V in the input
  Expr kv_heads;      ///< heads of K, then as many of V
  Expr head_dim;      ///< of a key head; the rest of `kept` is V
  WindowSpec window;  ///< the keys that later tokens see
};

/// Q·Kᵀ, scaled, biased and masked. -> `[batch, heads, queries, keys]`
struct AttentionScores {
  AttentionShape shape;
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ScoreShaping shaping;
  ValuePlace values = ValuePlace::after_keys;
};

/// Softmax over the keys, in place.
struct Softmax {
  Expr elements;
  SoftmaxPrecision precision = SoftmaxPrecision::activation;
};

/// Probabilities · V. -> `[batch, queries, heads·value_head_dim]`
struct AttentionContext {
  AttentionShape shape;
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ValuePlace values = ValuePlace::after_keys;
};

/// Scores, softmax and context in one kernel with an online softmax (arXiv 2205.14135).
struct FusedAttention {
  AttentionShape shape;
  Expr pairs;  ///< unmasked (query, key) pairs per sequence
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ScoreShaping shaping;
  ValuePlace values = ValuePlace::after_keys;
};

/// φ(x) = elu(x) + 1 of queries and keys, in place (arXiv 2006.16236, eq. 7).
struct FeatureMap {
  HeadRows heads;
};

/// φ(Q)·(φ(K)ᵀ·V) divided by φ(Q)·Σφ(K). The causal form keeps a running state (arXiv 2006.16236,
/// eq. 5 and 10).
struct LinearAttention {
  AttentionShape shape;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state
  Masking masking = Masking::none;
};

/// Causal depthwise convolution over time, then an activation, in place. `[rows, channels]`, and
/// the last `kernel` inputs `[batch, kernel, channels]` if cached. The next position needs one
/// less; the reference code keeps all of them.
struct ShortConvolution {
  Expr batch;
  Expr rows;
  Expr channels;
  Expr kernel;
  ActivationKind activation = ActivationKind::silu;
  bool bias = false;
  KeySource past = KeySource::projections;  ///< cache: continues from the cached inputs

  [[nodiscard]] Expr elements() const { return rows * channels; }
  [[nodiscard]] Expr state_elements() const { return batch * kernel * channels; }
};

/// Scan of a state-space layer (StateSpaceSpec) by its recurrence. Inputs of a dual layer: rows
/// `[x | B | C]` and `[Δ]`; of a lightning one: rows `[x | B | C]`; of a selective one: rows `[x]`,
/// `[Δ]`, and the rows that have B and C from element `first_parameter`. Then the state `[batch,
/// heads, head_dim, state_size]`, if cached. -> `[rows, heads·head_dim]`
struct StateSpaceScan {
  StateSpaceKind kind = StateSpaceKind::dual;
  Expr batch;
  Expr rows;
  Expr heads;
  Expr head_dim;
  Expr groups;
  Expr state_size;
  Expr first_parameter;
  double least_time_step = 0;
  double greatest_time_step = 0;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state

  [[nodiscard]] Expr output_elements() const { return rows * heads * head_dim; }
  /// Elements of the states of all tokens.
  [[nodiscard]] Expr scanned_elements() const { return output_elements() * state_size; }
  [[nodiscard]] Expr state_elements() const { return batch * heads * head_dim * state_size; }
};

/// Gated delta rule (arXiv 2412.06464, eq. 10): a state `[heads, key_dim, value_dim]` decays, is
/// corrected by each token's key and value, and is read by its query. Queries and keys are divided
/// by their length. Inputs: rows `[Q | K | V]` and `[β | α]`, the strength of the correction before
/// its sigmoid and the time step of the decay before its softplus; then the state, if cached.
/// -> `[rows, heads·value_dim]`
struct GatedDelta {
  Expr batch;
  Expr rows;
  Expr key_heads;  ///< of queries and keys; consecutive value heads share one
  Expr heads;      ///< value heads
  Expr key_dim;
  Expr value_dim;
  KeySource state = KeySource::projections;
};

/// x · f(gate), element-wise, in place. Both tensors have the same shape.
struct OutputGate {
  ActivationKind kind = ActivationKind::sigmoid;
  Expr elements;
};

/// Element-wise activation, in place.
struct Activation {
  ActivationKind kind = ActivationKind::gelu;
  Expr elements;
};

/// activation(gate) · up. `[rows, 2·width]` -> `[rows, width]`
struct GatedActivation {
  ActivationKind kind = ActivationKind::silu;
  Expr elements;  ///< of the output
  /// Slices of a second input `[rows, slices·width]`, one per layer of the stack, each the `up` of
  /// its layer; zero: gate and up stand in one input.
  Expr slices{};
};

/// x + m·f(x), in place; the second input is multiplied.
struct ResidualAdd {
  Expr elements;
  double multiplier = 1;
};

/// Top-k routing: selects `per_token` experts per row and their weights from the router's scores.
/// `[rows, num_experts]` -> `[rows, 2·per_token]`
struct RouterSelect {
  Expr rows;
  Expr num_experts;
  Expr per_token;
  ExpertsSpec spec;
};

/// Multiplies every row by the weights of its experts. Inputs: `[rows, in]` or the output of
/// another ExpertLinear, and the routing. -> `[rows·per_token, out]`, ordered by expert.
struct ExpertLinear {
  enum class Source { tokens, experts };
  Source source = Source::tokens;
  Expr rows;
  Expr num_experts;
  Expr per_token;
  Expr in_features;
  Expr out_features;
  bool bias = false;
  ExpertWeighting weighting = ExpertWeighting::output;
};

/// Weighted sum of each row's experts. `[rows·per_token, width]` and the routing -> `[rows, width]`
struct ExpertCombine {
  Expr rows;
  Expr per_token;
  Expr width;
  ExpertWeighting weighting = ExpertWeighting::output;
};

/// x · sigmoid(gate) with one gate per row, in place. `[rows, width]` and `[rows, 1]`
struct RowGate {
  Expr rows;
  Expr width;
};

/// x · w with one trained weight per channel, in place. `[rows, width]`
struct ChannelScale {
  Expr rows;
  Expr width;
};

/// Dropout in training, in place; saves a mask.
struct Dropout {
  Expr elements;
};

/// Pooling of a sequence to one vector: its first or second token, the mean of its tokens, or the
/// first token followed by the mean of the others.
enum class TokenPooling { first, second, mean, first_and_mean };

/// Pools each sequence. `[batch, seq, d]` -> `[batch, d]`, or `[batch, 2·d]` for first_and_mean.
struct SelectToken {
  Expr elements;  ///< of the output
  TokenPooling pooling = TokenPooling::first;
  Expr averaged{};  ///< elements of the input that enter a mean
};

/// Multiplies by a constant, in place.
struct Scale {
  Expr elements;
  double factor = 1;
  HeadRows part{};  ///< the part of each row that is multiplied; empty: all
};

/// Multiplies every row by a trained vector `[width]`, or by one trained number, in place.
struct TrainedScale {
  Expr rows;
  Expr width;
};

/// cap · tanh(x / cap), in place.
struct SoftCap {
  Expr elements;
  double cap = 1;
};

/// Mean negative log-likelihood of a log-softmax over the classes. `[rows, classes]` -> scalar
struct CrossEntropy {
  Expr rows;
  Expr classes;
  SoftmaxPrecision precision = SoftmaxPrecision::activation;
};

/// Ranks that communicate with each other, one group per dimension of a parallel plan.
enum class RankGroup { tensor, context, pipeline, expert, data };
enum class CollectiveKind {
  none,            ///< no communication in this direction
  all_reduce,      ///< every rank receives the sum of all buffers
  all_gather,      ///< every rank receives all shards
  reduce_scatter,  ///< every rank receives its shard of the sum
  all_to_all,      ///< every rank sends a different shard to every other
  send,            ///< point to point
};

/// The pass in which a collective brings tokens, or their gradients, to the experts. Some recipes
/// send these in 8 bits, and what comes back in 16 (arXiv 2412.19437, section 3.3.3).
enum class Dispatch { none, forward, backward };

/// Communication between the ranks of a group in the forward and backward pass. Occurs only in a
/// sharded graph (parallel_plan.h), which headroom counts and does not run.
struct Collective {
  RankGroup group = RankGroup::tensor;
  CollectiveKind forward = CollectiveKind::none;
  CollectiveKind backward = CollectiveKind::none;
  /// all_gather, reduce_scatter: one rank's shard. Others: the whole buffer.
  Expr bytes;
  Symbol whole = Symbol::seq_len;  ///< all_gather: the gathered length
  Symbol held = Symbol::seq_len;   ///< all_gather: a rank's shard of it, saved between the passes
  Dispatch dispatch = Dispatch::none;
};

using Op =
    std::variant<TokenEmbedding, PositionEmbedding, PatchEmbedding, Convolution,
                 RelativePositionBias, PositionTableRows, DisentangledBias, Linear, Norm, HeadNorm,
                 Rotary, Clamp, TemperatureScale, LatentConcat, HeadLinear, GroupedLinear,
                 KeyCompression, IndexScores, KeySelect, StreamWeights, StreamStep, KvCacheAppend,
                 AttentionScores, Softmax, AttentionContext, FusedAttention, FeatureMap,
                 LinearAttention, ShortConvolution, StateSpaceScan, GatedDelta, Recurrence,
                 OutputGate, Activation, GatedActivation, RouterSelect, ExpertLinear, ExpertCombine,
                 RowGate, ResidualAdd, ChannelScale, Dropout, SelectToken, Scale, TrainedScale,
                 SoftCap, CrossEntropy, Collective>;

}  // namespace headroom
