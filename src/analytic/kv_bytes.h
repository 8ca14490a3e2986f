// Bytes of stored keys and values: of so many tokens in one layer. Internal to src/analytic.
#pragma once

#include <vector>

#include "headroom/kv_cache.h"

namespace headroom::detail {

enum class KvRole { key, value };

/// The vectors of one kind that a token adds to a layer's cache: a key or a value for each head, or
/// one latent vector.
struct KvVectors {
  KvRole role = KvRole::key;
  Integer count = 0;
  Integer length = 0;
};

/// How they are stored. `waiting` is the type of tokens that are not quantised yet.
struct KvFormat {
  KvType type = KvType::float32;
  KvScales scales = KvScales::none;
  KvType waiting = KvType::float32;
};

struct StoredBytes {
  Integer values = 0;
  Integer scales = 0;
  [[nodiscard]] Integer total() const { return checked_add(values, scales); }
};

/// Bytes of `tokens` tokens of one sequence. Scales of whole tensors are not in it.
[[nodiscard]] StoredBytes bytes_of_tokens(const std::vector<KvVectors>& vectors,
                                          const KvFormat& format, Integer tokens);

/// Bytes of the scales that a layer has once, however many sequences there are.
[[nodiscard]] Integer bytes_of_tensor_scales(const std::vector<KvVectors>& vectors,
                                             const KvFormat& format);

/// Throws Error{invalid_input} where the type, its scales and the vectors do not go together.
void require_storable(const std::vector<KvVectors>& vectors, const KvFormat& format);

}  // namespace headroom::detail
