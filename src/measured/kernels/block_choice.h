// Choice of blocks of keys by an indexer (MiniMax M3, transformers' models/minimax_m3_vl).
#pragma once

#include "indexer.h"

namespace headroom::measured {

/// The keys that a query reads.
struct BlockChoice {
  std::int64_t blocks = 0;      ///< the most that it reads
  std::int64_t block_size = 0;  ///< keys
  std::int64_t local = 0;       ///< the last blocks before it, which it always reads; 1 to `blocks`
};

/// Replaces the scores [batch, heads, queries, keys] of the keys that each head chooses for a query
/// by 0, and all others by -infinity. A block's score is that of its best key; the earlier of two
/// equal blocks is chosen. `args.key_mask` is not read.
void choose_blocks(const IndexerArguments& args, const BlockChoice& choice, float* scores);

}  // namespace headroom::measured
