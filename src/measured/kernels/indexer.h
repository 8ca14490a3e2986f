// Sparse attention with an indexer (arXiv 2512.02556, section 2.1): index scores, the choice of
// keys, and attention over the chosen keys only.
#pragma once

#include "attention.h"

namespace headroom::measured {

/// Operands of index scores. Rows of queries and weights are contiguous.
struct IndexerArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t past = 0;  ///< tokens before the first query's position
  std::int64_t rate = 1;  ///< tokens that a key covers
  std::int64_t key_batch_stride = 0;
  const float* q = nullptr;                ///< [batch, queries, heads, head_dim]
  const float* k = nullptr;                ///< [batch, keys, head_dim], in its stride
  const float* weights = nullptr;          ///< [batch, queries, heads]
  const std::uint8_t* key_mask = nullptr;  ///< [batch, keys], 0 for padding; null for none
};

/// scores [batch, queries, keys] = Σ over the heads of w·ReLU(q·k), scaled by 1/√(heads·head_dim).
/// Returns the FLOPs of both matrix products, masked pairs included.
std::int64_t index_scores(const IndexerArguments& args, float* scores);

/// scores [batch, heads, queries, keys] = q·k of each head, masked pairs included. Returns the
/// FLOPs of the matrix product. `args.weights` is not read.
std::int64_t index_products(const IndexerArguments& args, float* scores);

/// Replaces the scores of the `top_k` best keys that each query may see by 0, and all others by
/// -infinity. The earlier of two equal keys is chosen.
void choose_keys(const IndexerArguments& args, std::int64_t top_k, float* scores);

/// Operands of a choice of pools of tokens.
struct PoolArguments {
  std::int64_t batch = 1;
  std::int64_t queries = 0;
  std::int64_t pools = 0;
  std::int64_t keys = 0;  ///< tokens
  std::int64_t past = 0;  ///< tokens before the first query's position
  std::int64_t pool_size = 1;
  const std::uint8_t* key_mask = nullptr;  ///< as of IndexerArguments; padding reads all tokens
};

/// out [batch, queries, keys] = the choice [batch, queries, pools] of each token's pool; 0 for the
/// tokens behind the last whole pool that a query sees, -infinity for those behind the query.
void choose_pool_tokens(const PoolArguments& args, const float* choice, float* out);

/// Floats of scratch memory that `sparse_attention` needs on `threads` threads.
[[nodiscard]] std::int64_t sparse_attention_scratch_floats(const AttentionArguments& args,
                                                           int threads);

/// Attention of every query over the keys that `args.choice` leaves. Returns the FLOPs of both
/// matrix products over these pairs.
std::int64_t sparse_attention(const AttentionArguments& args, float* scratch);

}  // namespace headroom::measured
