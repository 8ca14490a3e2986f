// Cells: tokens that a policy holds and reserves in one layer. Internal to src/analytic.
#pragma once

#include "kv_policies.h"

namespace headroom::detail {

/// Tokens of one sequence in one layer.
struct CellQuery {
  KvGrowth growth = KvGrowth::full;
  WindowSpec window{};
  Integer tokens = 0;  ///< of the sequence
  Integer used = 0;    ///< read by the next step from this layer
  Integer batch = 1;   ///< sequences
};

/// Tokens in one layer: per sequence, or of all sequences in a cache that they share.
struct Cells {
  Integer steady = 0;    ///< held while decoding at this length
  Integer reserved = 0;  ///< needed to admit a sequence of this length
};

/// Cells of a growing layer.
[[nodiscard]] Cells cells_of(const ResolvedPolicy& policy, const CellQuery& query,
                             const ModelSpec& spec);

/// Tokens in the blocks that contain the last `used` of `tokens` tokens.
[[nodiscard]] Integer block_cells(Integer block, Integer tokens, Integer used);

/// Blocks of vLLM for one sequence of a layer. Source: max_memory_usage_bytes of FullAttentionSpec,
/// SlidingWindowSpec and ChunkedLocalAttentionSpec in vllm/v1/kv_cache_interface.py, 001cabc.
[[nodiscard]] Integer vllm_reserved_blocks(const ResolvedPolicy& policy, const CellQuery& query);

}  // namespace headroom::detail
