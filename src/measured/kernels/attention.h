// Softmax attention (arXiv 1706.03762, 3.2.1): step by step with all scores in memory, and fused.
#pragma once

#include <cstdint>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// Operands of one attention. A token's row of q or out holds its heads one after another, so head
/// h begins at h · head_dim of it; where the heads of k and v begin is theirs to say, since a cache
/// is read fastest when each head's keys are neighbours. Strides are floats from one token to the
/// next, and sequences of a batch follow each other at the batch strides. Query head h reads
/// key-value head h · kv_heads / heads.
struct AttentionArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides heads
  std::int64_t head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;

  const float* q = nullptr;  ///< [batch, queries, heads, head_dim]
  const float* k = nullptr;  ///< [batch, keys, kv_heads, head_dim] by its strides
  const float* v = nullptr;  ///< [batch, keys, kv_heads, value_head_dim], likewise
  float* out = nullptr;      ///< [batch, queries, heads, value_head_dim]
  std::int64_t q_stride = 0;
  std::int64_t k_stride = 0;
  std::int64_t v_stride = 0;
  std::int64_t out_stride = 0;
  std::int64_t k_head_stride = 0;
  std::int64_t v_head_stride = 0;
  std::int64_t q_batch_stride = 0;
  std::int64_t k_batch_stride = 0;
  std::int64_t v_batch_stride = 0;
  std::int64_t out_batch_stride = 0;

  float scale = 1;  ///< positive; of the scores
  bool causal = false;
  /// Keys before the first query's own: with a causal mask query i sees key j where j <= past + i.
  std::int64_t past = 0;
  /// Which of the keys that causality leaves a query sees; its position is past + i.
  WindowSpec window;
  float soft_cap = 0;             ///< scaled scores become cap·tanh(scores / cap); 0: they do not
  const float* bias = nullptr;    ///< [heads, queries, keys], added to scaled scores
  const float* slopes = nullptr;  ///< [heads], times a key's index added to scores
  AlibiOrder alibi_order = AlibiOrder::after_scale;  ///< how they are added
  const float* sinks = nullptr;                       ///< [heads], a score each that has no value
  const std::uint8_t* key_mask = nullptr;             ///< [batch, keys], 0 for padding
};

/// One more than the last key that query `query` sees, before padding is taken away.
[[nodiscard]] std::int64_t visible_keys(const AttentionArguments& args, std::int64_t query);

/// The first key that query `query` sees.
[[nodiscard]] std::int64_t first_key(const AttentionArguments& args, std::int64_t query);

/// scores [batch, heads, queries, keys] = Q·Kᵀ, not scaled, hidden pairs as well. Returns the
/// operations of the product.
std::int64_t attention_scores(const AttentionArguments& args, float* scores);

/// Scores become probabilities, in place: scale, bias, masks and softmax. What rows with nothing
/// to see become is said at `softmax`.
void attention_softmax(const AttentionArguments& args, float* scores);

/// out = probabilities · V, hidden pairs as well. Returns the operations of the product.
std::int64_t attention_context(const AttentionArguments& args, const float* probabilities);

/// Floats of scratch memory that `fused_attention` needs on so many threads.
[[nodiscard]] std::int64_t fused_attention_scratch_floats(const AttentionArguments& args,
                                                          int threads);

/// All of the above in one pass over the keys, with an online softmax (arXiv 2205.14135), so that
/// no queries × keys are ever held; tiles that the causal mask hides are skipped. Runs on
/// omp_get_max_threads() threads, which `scratch` must suffice for.
///
/// Returns the operations of both products over the pairs that the causal mask shows:
/// 2 · (head_dim + value_head_dim) · Σ visible pairs, those of the window among them. Hidden pairs
/// that a tile on the diagonal computes in passing are not counted, pairs with padding are.
std::int64_t fused_attention(const AttentionArguments& args, float* scratch);

}  // namespace headroom::measured
