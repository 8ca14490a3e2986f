// Op: one operator of a model, as a closed variant of small structs. An op carries its own sizes as
// Exprs, so that counting it needs nothing else; no visit of it has a catch-all branch, so a new op
// does not compile until it is counted (and run).
#pragma once

#include <variant>

#include "headroom/expr.h"
#include "headroom/model_spec.h"

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

/// Whether keys and values come from the KV-cache or from this pass's own projections.
enum class KeySource { projections, cache };
enum class Masking { none, causal };
/// What is added to the scores.
enum class ScoreBias { none, relative_position };
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
};

/// Normalisation over the last dimension. [rows, width] -> [rows, width]
struct Norm {
  NormKind kind = NormKind::layer_norm;
  bool bias = true;
  Expr rows;
  Expr width;
};

/// Rotary position embedding of queries and keys, in place.
struct Rotary {
  Expr elements;        ///< of queries and keys together
  Expr table_elements;  ///< of cos, and as many of sin: [s, head_dim]
};

/// Writes the new keys and values behind those that the KV-cache holds.
struct KvCacheAppend {
  Expr elements;
};

/// Q·Kᵀ, scaled, biased and masked. -> [batch, heads, queries, keys]
struct AttentionScores {
  AttentionShape shape;
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ScoreBias bias = ScoreBias::none;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
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
};

/// Scores, softmax and context in one kernel with an online softmax (arXiv 2205.14135).
struct FusedAttention {
  AttentionShape shape;
  Expr pairs;  ///< of one sequence: those that the mask leaves
  KeySource keys = KeySource::projections;
  Masking masking = Masking::none;
  ScoreBias bias = ScoreBias::none;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
};

/// elu(x) + 1 of queries and keys, in place (arXiv 2006.16236, eq. 7).
struct FeatureMap {
  Expr elements;
};

/// φ(Q)·(φ(K)ᵀ·V), divided by φ(Q)·Σφ(K); causal by a running state (arXiv 2006.16236, eq. 5, 10).
struct LinearAttention {
  AttentionShape shape;
  KeySource state = KeySource::projections;  ///< cache: goes on from the state that is held
  Masking masking = Masking::none;
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

/// x + f(x), in place.
struct ResidualAdd {
  Expr elements;
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
};

/// Log-softmax over the classes and the mean negative log-likelihood. [rows, classes] -> scalar
struct CrossEntropy {
  Expr rows;
  Expr classes;
  SoftmaxPrecision precision = SoftmaxPrecision::activation;
};

using Op = std::variant<TokenEmbedding, PatchEmbedding, RelativePositionBias, Linear, Norm, Rotary,
                        KvCacheAppend, AttentionScores, Softmax, AttentionContext, FusedAttention,
                        FeatureMap, LinearAttention, Activation, GatedActivation, ResidualAdd,
                        Dropout, SelectToken, Scale, CrossEntropy>;

/// Builds a visitor out of lambdas, one for each alternative.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace headroom
