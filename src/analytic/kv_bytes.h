// Bytes of cached keys and values of one layer. Internal to src/analytic.
#pragma once

#include <vector>

#include "headroom/storage.h"

namespace headroom::detail {

enum class KvRole { key, value };

/// Vectors of one kind that each token adds to a layer's cache: a key or value per head, or one
/// latent vector.
struct KvVectors {
  KvRole role = KvRole::key;
  Integer count = 0;
  Integer length = 0;
};

/// Scale of one token and head, KvScales::token_head.
struct TokenScale {
  Integer bytes = 2;
  Integer zero_point_bytes = 2;  ///< of integers
};

/// vLLM budgets a float32 per token, head and side, whatever the type:
/// AttentionSpec.page_size_bytes for KVQuantMode.is_per_token_head, vllm/v1/kv_cache_interface.py
/// (2026).
inline constexpr TokenScale kVllmTokenScale{4, 0};

/// Storage format. `waiting` is the type of tokens that are not quantised yet.
struct KvFormat {
  KvType key_type = KvType::float32;
  KvType value_type = KvType::float32;
  KvScales scales = KvScales::none;
  KvType waiting = KvType::float32;
  TokenScale token_scale{};

  [[nodiscard]] KvType type_of(KvRole role) const noexcept {
    return role == KvRole::key ? key_type : value_type;
  }
};

/// Bytes of values and of their scales.
struct StoredBytes {
  Integer values = 0;
  Integer scales = 0;
  [[nodiscard]] Integer total() const { return checked_add(values, scales); }
};

/// Bytes of `tokens` tokens of one sequence, without per-tensor scales.
[[nodiscard]] StoredBytes bytes_of_tokens(const std::vector<KvVectors>& vectors,
                                          const KvFormat& format, Integer tokens);

/// Bytes of a layer's per-tensor scales, independent of the number of sequences.
[[nodiscard]] Integer bytes_of_tensor_scales(const std::vector<KvVectors>& vectors,
                                             const KvFormat& format);

/// Throws Error{invalid_input} if type, scales and vectors are incompatible.
void require_storable(const std::vector<KvVectors>& vectors, const KvFormat& format);

}  // namespace headroom::detail
