#include "linear_attention.h"
#include "parallel.h"
#include "softmax.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::kLanes;

/// x = function(x) for `count` elements.
template <class Function>
void map_elements(float* x, std::int64_t count, const Function& function) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) simd::store(x + i, function(simd::load(x + i)));
  if (i == count) return;
  simd::store_first(x + i, function(simd::load_first(x + i, count - i)), count - i);
}

/// Calls body(row) for every row; threads share them.
template <class Body>
void for_rows(const MappedRows& features, const Body& body) {
  const std::int64_t elements = features.rows * features.heads * features.head_dim;
#pragma omp parallel for if (elements >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < features.rows; ++row) body(features.x + row * features.stride);
}

template <class Function>
void map_rows(const MappedRows& features, const Function& function) {
  for_rows(features, [&, width = features.heads * features.head_dim](float* row) {
    map_elements(row, width, function);
  });
}

void softmax_of_heads(const MappedRows& features) {
  const SoftmaxRow dimensions{.keys = features.head_dim, .visible = features.head_dim};
  for_rows(features, [&](float* row) {
    for (std::int64_t head = 0; head < features.heads; ++head) {
      softmax(dimensions, row + head * features.head_dim);
    }
  });
}

}  // namespace

void feature_map(FeatureMapKind kind, const MappedRows& features) {
  switch (kind) {
    case FeatureMapKind::elu_plus_one:
      return map_rows(features, [](simd::Floats x) { return simd::elu_plus_one(x); });
    case FeatureMapKind::relu:
      return map_rows(features, [](simd::Floats x) { return simd::relu(x); });
    case FeatureMapKind::exp:
      return map_rows(features, [](simd::Floats x) { return simd::exp(x); });
    case FeatureMapKind::softmax:
      return softmax_of_heads(features);
  }
}

}  // namespace headroom::measured
