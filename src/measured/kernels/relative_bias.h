// Attention bias by bucketed distance, as in T5 (arXiv 1910.10683, 2.1).
#pragma once

#include <cstdint>

#include "headroom/op.h"

namespace headroom::measured {

struct RelativeBiasArguments {
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t past = 0;  ///< position of the first query; the first key is at 0
  /// causal: all buckets for keys behind the query; none: half of them for keys ahead.
  Masking masking = Masking::none;
  std::int64_t num_buckets = 0;
  std::int64_t max_distance = 0;
  const float* table = nullptr;  ///< [num_buckets, heads]
};

/// Bucket of a key `distance` = key position - query position away: small distances have one each,
/// larger ones share them on a logarithmic scale that ends at max_distance.
[[nodiscard]] std::int64_t relative_bucket(const RelativeBiasArguments& args,
                                           std::int64_t distance);

/// out [heads, queries, keys]
void fill_relative_bias(const RelativeBiasArguments& args, float* out);

}  // namespace headroom::measured
