// Cells: tokens that a policy reserves for one sequence in one layer. Internal to src/analytic.
#pragma once

#include "headroom/kv_cache.h"

namespace headroom::detail {

/// Tokens of one sequence in one layer.
struct CellQuery {
  KvGrowth growth = KvGrowth::full;
  WindowSpec window{};
  Integer tokens = 0;  ///< of the sequence
  Integer used = 0;    ///< read by the next step from this layer
};

/// A policy with its options resolved.
struct ResolvedPolicy {
  KvPolicy policy = KvPolicy::ideal;
  Integer block = 1;
  Integer capacity = 0;  ///< tokens reserved per sequence
};

/// Fills in defaults. Throws Error{invalid_input} for an option out of range or without effect on
/// the policy.
[[nodiscard]] ResolvedPolicy resolve_policy(const KvCacheRequest& request, Integer tokens);

/// Returns whether the policy reserves a length in advance (--kv-capacity).
[[nodiscard]] bool reserves_for_length(KvPolicy policy) noexcept;
/// Returns whether the policy allocates blocks (--kv-block).
[[nodiscard]] bool has_blocks(KvPolicy policy) noexcept;

/// Tokens that the policy reserves for one sequence in a growing layer. Throws Error{invalid_input}
/// if the policy has no documented rule for the layer.
[[nodiscard]] Integer reserved_cells(const ResolvedPolicy& policy, const CellQuery& query,
                                     const ModelSpec& spec);

/// Throws Error{invalid_input} if the policy has no documented rule for layers of this growth.
void require_known(KvPolicy policy, const ModelSpec& spec, KvGrowth growth);
/// Throws Error{invalid_input} if the policy does not support the type and scales.
void require_type(KvPolicy policy, KvType type, KvScales scales);

/// Layers per group in vLLM: the number of layers of the rarer kind, unless both kinds are about
/// equally frequent. Source: docs/design/hybrid_kv_cache_manager.md, case 3, and
/// vllm/v1/core/kv_cache_utils.py, vllm-project/vllm.
[[nodiscard]] Integer vllm_group_size(Integer fewest_layers, Integer most_layers);

}  // namespace headroom::detail
