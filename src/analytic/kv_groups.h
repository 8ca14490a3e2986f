// vLLM's groups of layers: all layers of a hybrid model share one pool of pages of equal size.
// Internal to src/analytic. Source: vllm/v1/core/kv_cache_utils.py, vllm-project/vllm 001cabc.
#pragma once

#include <span>
#include <vector>

#include "kv_cells.h"

namespace headroom::detail {

/// Layers with one KVCacheSpec, of which some may be in other rows.
struct PagedLayers {
  CellQuery query;  ///< `growth` constant: a recurrent state
  Integer layers = 0;
  Integer drafter_layers = 0;  ///< layers of a drafter like these, beside them
  Integer token_bytes = 0;     ///< of a growing layer
  Integer state_bytes = 0;     ///< of a constant state, per sequence
};

/// Pages of one row's layers.
struct LayerPages {
  Integer block = 0;  ///< tokens per page; 0: a constant state
  Integer page_bytes = 0;
  Integer steady_pages = 0;    ///< per sequence and layer
  Integer reserved_pages = 0;  ///< likewise
  Integer more_layers = 0;     ///< of a drafter, and unused ones that fill up the last group
};

/// Returns whether the layers need pages of equal size: more than one kind of spec that do not all
/// cache every token.
[[nodiscard]] bool is_hybrid(std::span<const PagedLayers> rows);

/// Pages of each row. Throws Error{invalid_input} for widths that vLLM cannot unify.
[[nodiscard]] std::vector<LayerPages> vllm_pages(const ResolvedPolicy& policy,
                                                 std::span<const PagedLayers> rows,
                                                 const ModelSpec& spec);

/// Layers per group: the number of layers of the rarer kind, unless the other kind has fewer than
/// 1.5 times as many.
[[nodiscard]] Integer vllm_group_size(Integer fewest_layers, Integer most_layers);

}  // namespace headroom::detail
