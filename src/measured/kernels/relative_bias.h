// Relative position bias of T5: one bias per bucket of distances (arXiv 1910.10683, 2.1).
#pragma once

#include <cstdint>

#include "headroom/op.h"

namespace headroom::measured {

struct RelativeBiasArguments {
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t past = 0;  ///< position of the first query; the first key is at 0
  /// causal: all buckets are for preceding keys; none: half of them are for following keys.
  Masking masking = Masking::none;
  std::int64_t num_buckets = 0;
  std::int64_t max_distance = 0;
  const float* table = nullptr;  ///< [num_buckets, heads]
};

/// Bucket of a key at `distance` = key position - query position. Small distances have a bucket
/// each; larger ones share buckets on a logarithmic scale up to max_distance.
[[nodiscard]] std::int64_t relative_bucket(const RelativeBiasArguments& args,
                                           std::int64_t distance);

/// Fills out [heads, queries, keys].
void fill_relative_bias(const RelativeBiasArguments& args, float* out);

}  // namespace headroom::measured
