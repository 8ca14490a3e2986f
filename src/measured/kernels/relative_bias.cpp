#include "relative_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.h"

namespace headroom::measured {

namespace {

/// Bucket of a non-negative distance. In float32 like the reference code, since its rounding
/// decides distances on a bucket's edge.
std::int64_t bucket_of(std::int64_t distance, std::int64_t buckets, std::int64_t max_distance) {
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return distance;
  const float ratio = static_cast<float>(distance) / static_cast<float>(exact);
  const auto range =
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const float place = std::log(ratio) / range * static_cast<float>(buckets - exact);
  return std::min(exact + static_cast<std::int64_t>(place), buckets - 1);
}

}  // namespace

std::int64_t relative_bucket(const RelativeBiasArguments& args, std::int64_t distance) {
  switch (args.masking) {
    case Masking::causal:
      return bucket_of(-std::min<std::int64_t>(distance, 0), args.num_buckets, args.max_distance);
    case Masking::none:
      break;
  }
  const std::int64_t half = args.num_buckets / 2;
  return (distance > 0 ? half : 0) + bucket_of(std::abs(distance), half, args.max_distance);
}

void fill_relative_bias(const RelativeBiasArguments& args, float* out) {
  // Every row is a window of one line over all distances, in ascending order.
  const std::int64_t least = -(args.past + args.queries - 1);
  const std::int64_t distances = args.keys - least;
  std::vector<std::int64_t> buckets;
  for (std::int64_t i = 0; i < distances; ++i) buckets.push_back(relative_bucket(args, least + i));
#pragma omp parallel
  {
    std::vector<float> line(buckets.size());
#pragma omp for schedule(static)
    for (std::int64_t head = 0; head < args.heads; ++head) {
      std::ranges::transform(buckets, line.begin(), [&](std::int64_t bucket) {
        return args.table[bucket * args.heads + head];
      });
      for (std::int64_t query = 0; query < args.queries; ++query) {
        std::copy_n(line.data() + (args.queries - 1 - query), args.keys,
                    out + (head * args.queries + query) * args.keys);
      }
    }
  }
}

}  // namespace headroom::measured
