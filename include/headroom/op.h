// Op: one operator of a model, as a closed variant of small structs. An op carries its own sizes as
// Exprs, so that counting it needs nothing else; no visit of it has a catch-all branch, so a new op
// does not compile until it is counted (and run).
#pragma once

#include <variant>

#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "headroom/visit.h"

namespace headroom {

/// Sizes of one attention: queries [batch, heads, queries, head_dim], keys
/// [batch, kv_heads, keys, head_dim], values [batch, kv_heads, keys, value_head_dim].
struct AttentionShape {
  Expr batch;
  Expr heads;
  Expr kv_heads;
  Expr head_dim;
  Expr value_head_dim;
  Expr queries;
  Expr keys;

  /// Elements of each operand, and of the scores [batch, heads, queries, keys].
  [[nodiscard]] Expr query_elements() const { return batch * queries * heads * head_dim; }
  [[nodiscard]] Expr key_elements() const { return batch * keys * kv_heads * head_dim; }
  [[nodiscard]] Expr value_elements() const { return batch * keys * kv_heads * value_head_dim; }
  [[nodiscard]] Expr score_elements() const { return batch * heads * queries * keys; }
  [[nodiscard]] Expr context_elements() const { return batch * queries * heads * value_head_dim; }
};

/// Heads that stand side by side in every row of a tensor: some of a row's `row_width` elements,
/// from `first` on.
struct HeadRows {
  Expr rows;
  Expr row_width;
  Expr first;
  Expr heads;
  Expr head_dim;

  [[nodiscard]] Expr elements() const { return rows * heads * head_dim; }
};

/// Whether keys and values come from the KV-cache or from this pass's own projections.
enum class KeySource { projections, cache };
enum class Masking { none, causal };
/// What is added to the scores: a table's entries, or a head's slope times the key's position.
enum class ScoreBias { none, relative_position, alibi };
/// Where an attention's values are: behind the keys, or within them (MLA's latent vectors).
enum class ValuePlace { behind_keys, within_keys };

/// What attention does to its scores besides a mask, before and in the softmax.
struct ScoreShaping {
  ScoreBias bias = ScoreBias::none;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
  double fixed_scale = 1;  ///< where `scale` is fixed
  double soft_cap = 0;     ///< 0: none
  bool sinks = false;
  AlibiSpec alibi{};
  WindowSpec window;
};
/// Which table positions come from when they are added to an embedding.
enum class AddedPositions { none, learned, sinusoidal };

/// Sum of the looked-up rows of a word table, a position table and a token-type table.
/// [b, s] -> [b, s, d]
struct TokenEmbedding {
  Expr tokens;   ///< b·s
  Expr seq_len;  ///< distinct positions, s
  Expr width;
  AddedPositions positions = AddedPositions::none;
  Expr type_rows;  ///< rows of the token-type table; zero where there is none
  EmbeddingScale scale = EmbeddingScale::none;
  double fixed_scale = 1;  ///< where `scale` is fixed
};

/// A row of a position table added to every token, in place. [b, s, d]
struct PositionEmbedding {
  Expr tokens;
  Expr seq_len;
  Expr width;
};

/// Convolution over positions, dense over channels, zero-padded: by (kernel - 1)·dilation in front
/// where it is causal, else by half of that on both sides (an odd one more behind).
/// [b, in_channels, stride·length] or [b, stride·length, in_channels] -> [b, length, out_channels]
struct Convolution {
  Expr batch;
  Expr in_channels;
  Expr out_channels;
  Expr kernel;
  Expr stride;
  Expr length;                  ///< of the output
  bool channels_first = false;  ///< of the input
  Expr dilation = Integer{1};   ///< positions of the input from one tap to the next
  Masking masking = Masking::none;
  bool bias = true;
  KeySource past = KeySource::projections;  ///< cache: the last inputs are held, and stand in front

  /// Inputs in front of a position that it sees where it is causal.
  [[nodiscard]] Expr reach() const { return (kernel - Integer{1}) * dilation; }
};

/// A recurrent layer behind the products with its inputs, position by position: h_t of h_{t-1} and
/// x_t = W_ih·input + b_ih, with the products W_hh·h_{t-1} + b_hh of every gate. Inputs:
/// [b, s, gates·width], and the state [b, states·width] where it is held. -> [b, s, width]
struct Recurrence {
  RecurrentCell cell = RecurrentCell::rnn;
  Expr batch;
  Expr seq_len;  ///< steps, each of which waits for the one before
  Expr width;
  bool bias = false;
  KeySource state = KeySource::projections;  ///< cache: goes on from the state that is held

  [[nodiscard]] Expr gates() const { return Integer{gates_of(cell)}; }
  [[nodiscard]] Expr state_elements() const { return batch * Integer{states_of(cell)} * width; }
  [[nodiscard]] Expr output_elements() const { return batch * seq_len * width; }
};

/// Linear projection of image patches, class token in front, positions added.
/// [b, channels, image_size, image_size] -> [b, 1 + patches, d]
struct PatchEmbedding {
  Expr batch;
  Expr patches;         ///< of one image
  Expr patch_elements;  ///< channels · patch_size²
  Expr width;
};

/// Table of biases by bucketed distance, looked up for every pair. -> [heads, queries, keys]
struct RelativePositionBias {
  Expr heads;
  Expr queries;
  Expr keys;
};

/// [rows, in_features] · [in_features, out_features] + bias
struct Linear {
  Expr rows;
  Expr in_features;
  Expr out_features;
  bool bias = false;
  Expr row_width{};  ///< from one input row to the next, where more lies in it; zero: in_features
};

/// Normalisation over the last dimension. [rows, width] -> [rows, width]
struct Norm {
  NormSpec spec;
  Expr rows;
  Expr width;
  Expr
      row_width{};  ///< from one row to the next, where more than `width` lies in it; zero: `width`
};

/// Norm of every head, or of all heads of a row together, in place.
struct HeadNorm {
  NormSpec spec;
  QueryKeyNormScope scope = QueryKeyNormScope::each_head;
  HeadRows heads;
};

/// Rotary position embedding of some heads, in place: `rotary_dim` dimensions of each, from
/// `first_dim` on.
struct Rotary {
  HeadRows heads;
  Expr first_dim;
  Expr rotary_dim;
  Expr seq_len;
  RopeSpec rope;

  [[nodiscard]] Expr elements() const { return heads.rows * heads.heads * rotary_dim; }
  /// Of cos, and as many of sin: [s, rotary_dim].
  [[nodiscard]] Expr table_elements() const { return seq_len * rotary_dim; }
};

/// Elements are brought within ±limit, in place.
struct Clamp {
  Expr elements;
  double limit = 0;
};

/// Queries multiplied by what grows with their position, in place.
struct TemperatureScale {
  HeadRows heads;
  Expr seq_len;
  TemperatureTuning tuning;
};

/// MLA's queries, and its latent vectors' keys and values, side by side as any attention has them:
/// every head's key is its own part and the one rotary key. Inputs: queries
/// [rows, heads·(nope + rope)], keys and values [rows, heads·(nope + value)], and rows that end
/// with the rotary key. -> [rows, heads·(nope + rope) | heads·(nope + rope) | heads·value]
struct LatentConcat {
  Expr rows;
  Expr heads;
  Expr nope_dim;
  Expr rope_dim;
  Expr value_dim;
  Expr latent_dim;  ///< elements in front of the rotary key
};

/// Every head's own product: [rows, heads, in] -> [rows, heads, out], by a slice of the weight that
/// expands MLA's latent vectors. Queries go into the latent space, contexts come out of it. What of
/// a head is not multiplied (`kept`) is copied behind the result.
struct HeadLinear {
  enum class Direction { query_to_latent, context_from_latent };
  Direction direction = Direction::query_to_latent;
  Expr rows;
  Expr heads;
  Expr in_features;
  Expr out_features;
  Expr kept;
};

/// Writes the new keys and values behind those that the KV-cache holds.
struct KvCacheAppend {
  Expr elements;
  HeadRows kept;  ///< where in a row of the input what is kept stands: `heads` parts of `head_dim`
  Expr kv_heads;  ///< heads of the keys, then as many of the values
  Expr head_dim;  ///< numbers of a key's head; the rest of what is kept are the values'
  WindowSpec window;  ///< the keys that later tokens will see
};

/// Q·Kᵀ, scaled, biased and masked. -> [batch, heads, queries, keys]
struct AttentionScores {
  AttentionShape shape;
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ScoreShaping shaping;
  ValuePlace values = ValuePlace::behind_keys;
};

/// Softmax over the keys, in place.
struct Softmax {
  Expr elements;
  SoftmaxPrecision precision = SoftmaxPrecision::activation;
};

/// Probabilities · V. -> [batch, queries, heads · value_head_dim]
struct AttentionContext {
  AttentionShape shape;
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ValuePlace values = ValuePlace::behind_keys;
};

/// Scores, softmax and context in one kernel with an online softmax (arXiv 2205.14135).
struct FusedAttention {
  AttentionShape shape;
  Expr pairs;  ///< of one sequence: those that the mask leaves
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ScoreShaping shaping;
  ValuePlace values = ValuePlace::behind_keys;
};

/// elu(x) + 1 of queries and keys, in place (arXiv 2006.16236, eq. 7).
struct FeatureMap {
  HeadRows heads;
};

/// φ(Q)·(φ(K)ᵀ·V), divided by φ(Q)·Σφ(K); causal by a running state (arXiv 2006.16236, eq. 5, 10).
struct LinearAttention {
  AttentionShape shape;
  KeySource state = KeySource::projections;  ///< cache: goes on from the state that is held
  Masking masking = Masking::none;
};

/// A causal convolution over time of every channel by itself, then SiLU, in place.
struct ShortConvolution {
  Expr rows;
  Expr channels;
  Expr kernel;
};

/// A state [heads, key_dim, value_dim] that decays, is corrected by each token's key and value, and
/// read by its query (arXiv 2412.06464, eq. 10). [rows, …] -> [rows, heads · value_dim]
struct GatedDelta {
  Expr batch;
  Expr rows;
  Expr heads;  ///< of values; keys and queries are repeated for them
  Expr key_dim;
  Expr value_dim;
  KeySource state = KeySource::projections;
};

/// x · f(gate), element by element, in place. Two tensors of the same shape.
struct OutputGate {
  ActivationKind kind = ActivationKind::sigmoid;
  Expr elements;
};

/// One function of every element, in place.
struct Activation {
  ActivationKind kind = ActivationKind::gelu;
  Expr elements;
};

/// activation(gate) * up. [rows, 2·width] -> [rows, width]
struct GatedActivation {
  ActivationKind kind = ActivationKind::silu;
  Expr elements;  ///< of the output
};

/// x + f(x), in place; or x + m·f(x), the second input being multiplied.
struct ResidualAdd {
  Expr elements;
  double multiplier = 1;
};

/// Which experts each row takes, and their weights, from the router's scores.
/// [rows, num_experts] -> [rows, 2 · per_token]
struct RouterSelect {
  Expr rows;
  Expr num_experts;
  Expr per_token;
  ExpertsSpec spec;
};

/// Every row times the weights of the experts that it takes. Input [rows, in] and the routing, or
/// what another of these made; -> [rows · per_token, out], ordered by expert.
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

/// The sum of a row's experts, weighted. [rows · per_token, width] and the routing -> [rows, width]
struct ExpertCombine {
  Expr rows;
  Expr per_token;
  Expr width;
  ExpertWeighting weighting = ExpertWeighting::output;
};

/// x · sigmoid(gate), one gate a row, in place. [rows, width] and [rows, 1]
struct RowGate {
  Expr rows;
  Expr width;
};

/// Drops elements in training, in place, and keeps a mask.
struct Dropout {
  Expr elements;
};

/// The hidden state of one token of each sequence. [b, s, d] -> [b, d]
struct SelectToken {
  Expr elements;  ///< of the output
};

/// A product with a constant, in place.
struct Scale {
  Expr elements;
  double factor = 1;
};

/// cap · tanh(x / cap), in place.
struct SoftCap {
  Expr elements;
  double cap = 1;
};

/// Log-softmax over the classes and the mean negative log-likelihood. [rows, classes] -> scalar
struct CrossEntropy {
  Expr rows;
  Expr classes;
  SoftmaxPrecision precision = SoftmaxPrecision::activation;
};

/// Ranks that exchange something with one another: one group a dimension of a parallel plan.
enum class RankGroup { tensor, context, pipeline, expert, data };
enum class CollectiveKind {
  none,            ///< nothing in this direction
  all_reduce,      ///< the sum of all ranks' buffers, to all
  all_gather,      ///< the shares of all ranks, to all
  reduce_scatter,  ///< a share of the sum to each rank
  all_to_all,      ///< a different share from each rank to each
  send,            ///< to one other rank
};

/// An exchange between the ranks of a group, in the forward and in the backward pass. Only a
/// sharded graph has it (shard.h); no rank runs alone, so nothing here runs it.
struct Collective {
  RankGroup group = RankGroup::tensor;
  CollectiveKind forward = CollectiveKind::none;
  CollectiveKind backward = CollectiveKind::none;
  /// all_gather, reduce_scatter: one rank's share; otherwise the whole buffer.
  Expr bytes;
  /// all_gather: the length that is gathered, and what a rank holds of it between the passes.
  Symbol whole = Symbol::seq_len;
  Symbol held = Symbol::seq_len;
};

using Op =
    std::variant<TokenEmbedding, PositionEmbedding, PatchEmbedding, Convolution,
                 RelativePositionBias, Linear, Norm, HeadNorm, Rotary, Clamp, TemperatureScale,
                 LatentConcat, HeadLinear, KvCacheAppend, AttentionScores, Softmax,
                 AttentionContext, FusedAttention, FeatureMap, LinearAttention, ShortConvolution,
                 GatedDelta, Recurrence, OutputGate, Activation, GatedActivation, RouterSelect,
                 ExpertLinear, ExpertCombine, RowGate, ResidualAdd, Dropout, SelectToken, Scale,
                 SoftCap, CrossEntropy, Collective>;

}  // namespace headroom
