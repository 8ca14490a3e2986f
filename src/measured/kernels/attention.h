// Softmax attention (arXiv 1706.03762, 3.2.1), eager (all scores in memory) and fused.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// Keys [begin, end) that a query sees beside those of the causal mask and the window.
struct KeySpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Operands of one attention. Strides are in floats: from one token to the next, and from one
/// sequence of the batch to the next. In q and out the heads of a token are contiguous: head h
/// starts at h · head_dim. In k and v heads have strides of their own, since a cache is read
/// fastest if each head's keys are contiguous. Query head h reads KV head h · kv_heads / heads.
struct AttentionArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides `heads`
  std::int64_t head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;

  const float* q = nullptr;  ///< [batch, queries, heads, head_dim]
  const float* k = nullptr;  ///< [batch, keys, kv_heads, head_dim], in its strides
  const float* v = nullptr;  ///< [batch, keys, kv_heads, value_head_dim], in its strides
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

  float scale = 1;  ///< positive; multiplies the scores
  bool causal = false;
  /// Keys before the first query's position: under a causal mask query i sees key j if j <= past +
  /// i.
  std::int64_t past = 0;
  /// Window on the keys that causality leaves visible; the query's position is past + i.
  WindowSpec window;
  /// [batch, queries], counted from the first query; null for none. Ends grow with the query.
  const KeySpan* spans = nullptr;
  float soft_cap = 0;           ///< score = cap·tanh(score / cap) after scaling; 0: no cap
  const float* bias = nullptr;  ///< [heads, queries, keys], added to scaled scores; null for none
  std::int64_t bias_batch_stride = 0;  ///< 0: one bias for all sequences
  const float* slopes =
      nullptr;  ///< [heads], ALiBi: times a key's index, added to scores; null for none
  bool slopes_of_distance = false;  ///< times the distance of query and key instead, negated
  AlibiOrder alibi_order =
      AlibiOrder::after_scale;  ///< order of scaling, rounding and adding ALiBi
  const float* sinks =
      nullptr;  ///< [heads], attention sinks: a score without a value; null for none
  /// [batch, choosers, queries, keys]: 0 for keys that an indexer chose, -infinity for others; null
  /// for none. Each chooser serves as many heads, in order.
  const float* choice = nullptr;
  std::int64_t choosers = 1;
  std::int64_t heads_per_chooser = 0;      ///< read if there are several
  std::int64_t first_head = 0;             ///< of these heads among all that the choosers serve
  const std::uint8_t* key_mask = nullptr;  ///< [batch, keys], 0 for padding; null for none
};

/// End of the keys that query `query` of sequence `batch` sees, before padding is masked.
[[nodiscard]] std::int64_t visible_keys(const AttentionArguments& args, std::int64_t batch,
                                        std::int64_t query);

/// First key that query `query` of sequence `batch` sees.
[[nodiscard]] std::int64_t first_key(const AttentionArguments& args, std::int64_t batch,
                                     std::int64_t query);

/// Index of query `query` among the keys if ALiBi counts distances.
[[nodiscard]] std::optional<std::int64_t> alibi_query(const AttentionArguments& args,
                                                      std::int64_t query);

/// An indexer's choice among the keys of a row of scores [batch, heads, queries].
[[nodiscard]] const float* choice_of_row(const AttentionArguments& args, std::int64_t row);

/// scores [batch, heads, queries, keys] = Q·Kᵀ without scale, masked pairs included. Returns the
/// FLOPs of the matrix product.
std::int64_t attention_scores(const AttentionArguments& args, float* scores);

/// Turns scores into probabilities, in place: scale, bias, masks, softmax. `softmax` defines rows
/// without visible keys.
void attention_softmax(const AttentionArguments& args, float* scores);

/// out = probabilities · V, masked pairs included. Returns the FLOPs of the matrix product.
std::int64_t attention_context(const AttentionArguments& args, const float* probabilities);

/// Floats of scratch memory that `fused_attention` needs on `threads` threads.
[[nodiscard]] std::int64_t fused_attention_scratch_floats(const AttentionArguments& args,
                                                          int threads);

/// Fused attention: one pass over the keys with an online softmax (arXiv 2205.14135). It never
/// stores queries × keys scores and skips tiles under the causal mask. Runs on
/// omp_get_max_threads() threads; `scratch` must suffice for them.
///
/// Returns the FLOPs of both matrix products over visible pairs: 2 · (head_dim + value_head_dim) ·
/// Σ visible pairs, after causal mask and window. Masked pairs computed in diagonal tiles are not
/// counted; pairs with padding are.
std::int64_t fused_attention(const AttentionArguments& args, float* scratch);

}  // namespace headroom::measured
