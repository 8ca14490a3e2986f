// Options of a KV-cache policy, checked and completed. Internal to src/analytic.
#pragma once

#include "headroom/storage.h"

namespace headroom::detail {

/// A policy with its options resolved.
struct ResolvedPolicy {
  KvPolicy policy = KvPolicy::ideal;
  Integer block = 1;
  Integer capacity = 0;        ///< tokens reserved per sequence
  Integer batched_tokens = 0;  ///< most tokens that one pass adds
  /// Batches that a windowed layer keeps its tokens for: those scheduled, not yet settled.
  Integer batches_in_flight = 1;
  Integer slots = 0;  ///< sequences that share one cache; 0: every sequence has its own
  /// Blocks of one recurrent layer and sequence, vLLM's MambaSpec.max_memory_usage_bytes: one (mode
  /// "none"), or two with prefix caching ("align"), and num_speculative_blocks.
  Integer state_blocks = 1;
  Integer speculative_tokens = 0;
  Integer drafter_layers = 0;
};

/// Fills in defaults for `batch` sequences of `tokens` tokens. Throws Error{invalid_input} for an
/// option out of range or without effect on the policy.
[[nodiscard]] ResolvedPolicy resolve_policy(const KvCacheRequest& request, Integer tokens,
                                            Integer batch);

/// Returns whether the policy is one of vLLM's.
[[nodiscard]] bool is_vllm(KvPolicy policy) noexcept;
/// Returns whether the policy is one of llama.cpp's.
[[nodiscard]] bool is_llama_cpp(KvPolicy policy) noexcept;
/// Returns whether the policy is one of transformers' caches.
[[nodiscard]] bool is_hugging_face(KvPolicy policy) noexcept;
/// Returns whether the policy reserves a length in advance (--kv-capacity).
[[nodiscard]] bool reserves_for_length(KvPolicy policy) noexcept;
/// Returns whether the policy allocates blocks (--kv-block).
[[nodiscard]] bool has_blocks(KvPolicy policy) noexcept;

/// Kinds of layers that a model's cache has.
struct LayerKinds {
  bool recurrent = false;
  bool full = false;  ///< without a window
};
/// Throws Error{invalid_input} for a request about recurrent layers, or about a drafter with the
/// model's full attention, if the model has none of that kind.
void require_layers(const KvCacheRequest& request, const ModelSpec& spec, LayerKinds layers);

/// Throws Error{invalid_input} if the policy has no documented rule for layers of this growth.
void require_known(KvPolicy policy, const ModelSpec& spec, KvGrowth growth,
                   const AttentionSpec& attention);
/// Throws Error{invalid_input} if the policy does not support the types and scales.
void require_types(KvPolicy policy, KvType key, KvType value, KvScales scales);

}  // namespace headroom::detail
