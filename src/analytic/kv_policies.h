// Cells: the tokens that a policy reserves for one sequence in one layer. Internal to src/analytic.
#pragma once

#include "headroom/kv_cache.h"

namespace headroom::detail {

/// What a layer's cache is asked for.
struct CellQuery {
  KvGrowth growth = KvGrowth::full;
  WindowSpec window{};
  Integer tokens = 0;  ///< that the sequence has
  Integer used = 0;    ///< of them, those that the next step needs from this layer
};

/// A policy with its options said.
struct ResolvedPolicy {
  KvPolicy policy = KvPolicy::ideal;
  Integer block = 1;
  Integer capacity = 0;  ///< tokens that a sequence has room for
};

/// Throws Error{invalid_input} where an option means nothing to the policy or is out of range.
[[nodiscard]] ResolvedPolicy resolve_policy(const KvCacheRequest& request, Integer tokens);

/// Whether --kv-capacity means something to it: its memory is for a length, not for what is there.
[[nodiscard]] bool reserves_for_length(KvPolicy policy) noexcept;
/// Whether --kv-block does.
[[nodiscard]] bool has_blocks(KvPolicy policy) noexcept;

/// Tokens that the policy holds for one sequence in a layer that grows. Throws Error{invalid_input}
/// where its rule for such a layer is not known.
[[nodiscard]] Integer reserved_cells(const ResolvedPolicy& policy, const CellQuery& query,
                                     const ModelSpec& spec);

/// Throws Error{invalid_input} where the policy has no rule for what the model keeps, or no such
/// type.
void require_known(KvPolicy policy, const ModelSpec& spec, KvGrowth growth);
void require_type(KvPolicy policy, KvType type, KvScales scales);

/// Layers that vLLM allocates together: as many as the rarer kind has, unless both are about as
/// frequent. Source: docs/design/hybrid_kv_cache_manager.md, case 3, and
/// vllm/v1/core/kv_cache_utils.py, vllm-project/vllm.
[[nodiscard]] Integer vllm_group_size(Integer fewest_layers, Integer most_layers);

}  // namespace headroom::detail
