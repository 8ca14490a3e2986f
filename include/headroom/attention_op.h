// Operators that mix positions by attention, from the rotation of queries and keys to the context.
// Parts of Op (op.h).
#pragma once

#include "headroom/expr.h"
#include "headroom/model_spec.h"

namespace headroom {

/// Keys of attention in blocks. `three_blocks`: the block before, the query's own and the next one
/// (LongT5); `three_blocks_and_global`: these and transient global tokens, in the last columns of
/// the scores. `window`: a block on either side of the query, scored in chunks of two blocks that
/// overlap by one (Longformer).
enum class BlockKeys { three_blocks, three_blocks_and_global, window };

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
  /// Pairs of a query and a key of its own image or window, where the rows of all images are one
  /// sequence; zero: all pairs.
  Expr image_pairs{};
  /// Queries attend in blocks of so many to the keys that `block_keys` tells. Zero: to all keys.
  Expr block{};
  BlockKeys block_keys = BlockKeys::three_blocks;
  /// Keys that every query sees beside its window: in the first columns of the scores, or in the
  /// last if they are transient.
  Expr global_keys{};
  ImageScope scope = ImageScope::image;

  [[nodiscard]] Expr pairs() const { return image_pairs.is_zero() ? queries * keys : image_pairs; }
  [[nodiscard]] bool is_blocked() const { return !block.is_zero(); }
  [[nodiscard]] bool is_chunked() const { return is_blocked() && block_keys == BlockKeys::window; }
  [[nodiscard]] bool has_transient_keys() const {
    return is_blocked() && block_keys == BlockKeys::three_blocks_and_global;
  }
  /// Pairs that the GEMM of the scores multiplies. N queries with a window of w on either side are
  /// N/w - 1 chunks of 2w rows, which start w apart; each multiplies its queries with its keys:
  /// (N/w - 1)·(2w)² = 4·w·N - 4·w² (transformers, modeling_longformer.py,
  /// _sliding_chunks_query_key_matmul). Then every query with the g global keys: N·g.
  [[nodiscard]] Expr score_products() const {
    if (!is_chunked()) return pairs();
    return Integer{4} * block * (queries - block) + queries * global_keys;
  }
  /// Pairs that the GEMM of the context multiplies: N/w blocks of w queries with the values of
  /// three blocks, w·3w·N/w = 3·w·N, outside the window with zeros
  /// (_sliding_chunks_matmul_attn_probs_value), and N·g.
  [[nodiscard]] Expr context_products() const {
    if (!is_chunked()) return pairs();
    return Integer{3} * block * queries + queries * global_keys;
  }
  /// Rows of keys: with blocks, those of all blocks and of one more at either end, and transient
  /// ones.
  [[nodiscard]] Expr key_rows() const {
    if (!is_blocked()) return keys;
    return queries + Integer{2} * block + (has_transient_keys() ? global_keys : Expr());
  }
  /// Elements of each operand, of the scores `[batch, heads, queries, keys]` and of the context.
  [[nodiscard]] Expr query_elements() const { return batch * queries * heads * head_dim; }
  [[nodiscard]] Expr key_elements() const { return batch * key_rows() * kv_heads * head_dim; }
  [[nodiscard]] Expr value_elements() const {
    return batch * key_rows() * kv_heads * value_head_dim;
  }
  [[nodiscard]] Expr score_elements() const { return batch * heads * pairs(); }
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
/// head times the key position, or without a causal mask times the distance (ALiBi).
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
  Lookahead lookahead = Lookahead::none;
  /// The last input `[batch, queries, keys]` masks all keys but those that an indexer chose; with
  /// a choice per head of the indexer, it is `[batch, index heads, queries, keys]`.
  KeyMask mask = KeyMask::none;
};

/// Looks up a bias for every pair in a table by bucketed distance. -> `[heads, queries, keys]`.
/// With transient global tokens (`global_keys`): for every block of each sequence, with a mask of
/// padding and of the window, and with biases by distance in global tokens, from a second table, in
/// the last columns. -> `[batch, queries / block, heads, block, keys]`
struct RelativePositionBias {
  Expr heads;
  Expr queries;
  Expr keys;
  Expr first_query{};  ///< position of the first query among the keys, without a cache
  Expr batch{Integer{1}};
  Expr block{};
  Expr global_keys{};

  [[nodiscard]] Expr elements() const { return batch * heads * queries * keys; }
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

/// Rows of sinusoids. `both_sides`: for the distances from `positions`/2 down to 1 - `positions`/2,
/// at every second of `width` frequencies (TransformerXlSpec). `earlier`: from `positions` - 1 down
/// to 0, at `width`/2 frequencies from 1 to 1/10000 inclusive (ConformerSpec).
enum class SinusoidRows { both_sides, earlier };

/// Sines, then cosines, of relative positions. -> `[batch, positions, width]`
struct RelativeSinusoids {
  Expr batch;
  Expr positions;
  Expr width;
  std::int64_t most = 0;  ///< greater distances are clamped to it; 0: none are
  SinusoidRows rows = SinusoidRows::both_sides;

  [[nodiscard]] Expr elements() const { return batch * positions * width; }
};

/// Scores of trained biases, relative positions and segments (TransformerXlSpec). Inputs: rows
/// `[Q | K | V]` and keys of the positions `[batch, positions, heads·head_dim]`.
/// -> `[batch, heads, queries, keys]`
struct TransformerXlBias {
  AttentionShape shape;
  Expr positions;
  Expr segments;
  double scale = 1;  ///< of the scores
};

/// Multiplies the relative position bias of a stack by a gate of every query and head (WavLM, arXiv
/// 2110.13900, section III-A; transformers, modeling_wavlm.py). A linear layer, equal for all
/// heads, maps a head's part of the attention's input to 2·4 values, whose sums of four become the
/// gates a and b by a sigmoid; the factor is a·(b·scale - 1) + 2 with a trained scale per head.
/// Inputs:
/// `[batch, queries, heads·head_dim]` and `[heads, queries, keys]`.
/// -> `[batch, heads, queries, keys]`
struct GatedPositionBias {
  static constexpr std::int64_t kSummed = 4;            ///< values whose sum is one gate
  static constexpr std::int64_t kValues = 2 * kSummed;  ///< of the linear layer
  AttentionShape shape;

  [[nodiscard]] Expr gated_rows() const { return shape.batch * shape.heads * shape.queries; }
};

/// Attention of chunks of rows in each clip of sound, with relative positions, in one kernel
/// (ConformerSpec; transformers, Gemma4AudioAttention and Gemma3nAudioAttention): queries times
/// softplus(scale)/(ln 2·√head_dim) with a trained scale per dimension, keys as they are or scaled;
/// scores q·k + q·r of every query with all keys of its chunk, then cap·tanh(scores / cap), masks,
/// softmax and context. Inputs: Q, K and V `[1, rows, heads·head_dim]` each, and keys of the
/// positions `[1, positions, heads·head_dim]`. -> `[1, rows, heads·head_dim]`
struct LocalAttention {
  Expr rows;
  Expr heads;
  Expr head_dim;
  std::int64_t chunk = 0;
  std::int64_t earlier = 0;
  std::int64_t later = 0;
  double soft_cap = 0;  ///< 0: no cap
  ConformerKeys keys = ConformerKeys::scaled;
  std::int64_t positions = 0;  ///< relative ones with a key of their own

  /// Keys of a chunk, outside its clip with zeros.
  [[nodiscard]] std::int64_t context() const noexcept { return chunk + earlier + later; }
  [[nodiscard]] Expr query_elements() const { return rows * heads * head_dim; }
  [[nodiscard]] Expr score_elements() const { return rows * heads * Integer{context()}; }
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
  std::int64_t step = 1;  ///< positions from one row to the next

  [[nodiscard]] Expr elements() const { return heads.rows * heads.heads * rotary_dim; }
  /// Elements of the cos table `[seq, rotary_dim]`; the sin table has as many.
  [[nodiscard]] Expr table_elements() const { return seq_len * rotary_dim; }
};

/// Clamps elements to ±limit, or with `stored` to a least and a greatest value among the weights,
/// in place.
struct Clamp {
  Expr elements;
  double limit = 0;
  LayerBounds bounds = LayerBounds::none;
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

/// Scores of an indexer: of all heads together, or of each.
enum class IndexHeads { summed, separate };

/// Scores of an indexer: Σ over its heads of w·ReLU(q·k) (arXiv 2512.02556, eq. 1). Inputs: queries
/// `[rows, heads·head_dim]`, one key per position `[batch, keys, head_dim]`, and the heads' weights
/// `[rows, heads]`. -> `[batch, queries, keys]`. With separate heads q·k of each, without weights.
/// -> `[batch, heads, queries, keys]`
struct IndexScores {
  Expr batch;
  Expr heads;
  Expr head_dim;
  Expr queries;
  Expr keys;
  KeySource source = KeySource::projections;
  IndexHeads result = IndexHeads::summed;
  std::int64_t rate = 1;  ///< tokens that a key covers

  [[nodiscard]] Expr pairs() const { return batch * queries * keys; }
  /// Weights of a head for a query.
  [[nodiscard]] Integer weights() const { return result == IndexHeads::summed ? 1 : 0; }
};

/// Chooses the `top_k` best keys of each query among those before it, in place: 0 for them, the
/// lowest number for all others. A key covers `rate` tokens. `[batch, queries, keys]`. In blocks,
/// for each head of the indexer: the best blocks of as many keys, by their best key, and always the
/// last `local_blocks`. `[batch, heads, queries, keys]`
struct KeySelect {
  Expr batch;
  Expr queries;
  Expr keys;
  std::int64_t top_k = 0;
  std::int64_t rate = 1;
  KeySource source = KeySource::projections;
  Expr heads{Integer{1}};
  std::int64_t block_size = 1;
  std::int64_t local_blocks = 0;

  [[nodiscard]] Expr pairs() const { return batch * heads * queries * keys; }
};

/// Tokens of chosen pools. Each token gets the choice of its pool, 0 or the lowest number. Tokens
/// behind the last whole pool that a query sees get 0, those behind the query the lowest number.
/// `[batch, queries, pools]` -> `[batch, queries, keys]`
struct PoolTokens {
  Expr batch;
  Expr queries;
  Expr pools;
  Expr keys;
  std::int64_t pool_size = 1;
  KeySource source = KeySource::projections;
};

/// Appends the new keys and values to the KV-cache.
struct KvCacheAppend {
  Expr elements;
  HeadRows kept;          ///< view of K and V in the input
  Expr kv_heads;          ///< heads of K, then as many of V
  Expr head_dim;          ///< of a key head; the rest of `kept` is V
  WindowSpec window;      ///< the keys that later tokens see
  std::int64_t rate = 1;  ///< tokens that a row covers
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

/// Copies the rows of the tokens with global attention: `gather` `[batch, seq, width]` ->
/// `[batch, tokens, width]`, with zeros where a sequence has fewer; `scatter` puts such rows, the
/// second input, back in place. `sum` adds the rows of each block to those of a transient global
/// token, `[batch, seq, width]` -> `[batch, tokens, width]`.
struct GlobalRows {
  enum class Kind { gather, scatter, sum };
  Kind kind = Kind::gather;
  Expr batch;
  Expr tokens;
  Expr width;
  Expr summed{};  ///< tokens per sequence that `sum` reads

  [[nodiscard]] Expr elements() const { return batch * tokens * width; }
  /// Elements that `sum` adds.
  [[nodiscard]] Expr added() const { return batch * summed * width; }
};

/// φ of queries and keys, in place.
struct FeatureMap {
  HeadRows heads;
  FeatureMapKind kind = FeatureMapKind::elu_plus_one;
};

/// φ(Q)·(φ(K)ᵀ·V) divided by φ(Q)·Σφ(K). The causal form keeps a running state (arXiv 2006.16236,
/// eq. 5 and 10).
struct LinearAttention {
  AttentionShape shape;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state
  Masking masking = Masking::none;
};

}  // namespace headroom
