#include "softmax.h"

#include <algorithm>
#include <cmath>

#include "alibi.h"
#include "parallel.h"
#include "vector_math.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// row = map(row); returns the sum of it.
template <class Map>
float transform(float* row, std::int64_t count, const Map& map) {
  if (count < kLanes) {
    const Floats value = map(simd::load_first(row, count));
    simd::store_first(row, value, count);
    return simd::sum(simd::lane_indices() < static_cast<std::int32_t>(count) ? value : Floats{});
  }
  const auto left_over = static_cast<std::int32_t>(count % kLanes);
  float* const end = row + count;
  const Floats last = simd::load(end - kLanes);  // before some of it is written
  Floats total = {};
  for (; row + kLanes <= end; row += kLanes) {
    const Floats value = map(simd::load(row));
    simd::store(row, value);
    total += value;
  }
  if (left_over > 0) {
    const Floats value = map(last);
    simd::store(end - kLanes, value);
    total +=
        simd::lane_indices() >= static_cast<std::int32_t>(kLanes) - left_over ? value : Floats{};
  }
  return simd::sum(total);
}

void multiply(float* values, std::int64_t count, float factor) {
  transform(values, count, [&](Floats some) { return some * factor; });
}

/// Adds to scaled scores by their keys' places.
void add_alibi(const SoftmaxRow& row, float* scores) {
  for (std::int64_t key = row.first; key < row.visible; ++key) {
    const float lowered = row.slope * static_cast<float>(row.index + key);
    scores[key] += row.alibi_order == AlibiOrder::after_scale
                       ? lowered
                       : rounded_to_bfloat16(lowered) * row.scale;
  }
}

/// Scales, caps, adds what is to be added and hides padding, so that the scale is 1 afterwards.
void prepare(const SoftmaxRow& row, float* scores) {
  const std::int64_t count = row.visible - row.first;
  float* const shown = scores + row.first;
  multiply(shown, count, row.scale);
  if (row.soft_cap > 0) {
    transform(shown, count,
              [&](Floats some) { return simd::tanh(some / row.soft_cap) * row.soft_cap; });
  }
  if (row.slope != 0) add_alibi(row, scores);
  if (row.bias != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) shown[i] += row.bias[row.first + i];
  }
  if (row.key_mask == nullptr) return;
  for (std::int64_t key = row.first; key < row.visible; ++key) {
    if (row.key_mask[key] == 0) scores[key] = kMinusInfinity;
  }
}

float largest(const float* scores, std::int64_t count) {
  if (count < kLanes) {
    float most = kMinusInfinity;
    for (std::int64_t i = 0; i < count; ++i) most = std::max(most, scores[i]);
    return most;
  }
  // The last vector overlaps the one before it, so that no score is left over.
  Floats some = simd::load(scores + count - kLanes);
  Floats others = some;
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    some = simd::max(some, simd::load(scores + i));
    others = simd::max(others, simd::load(scores + i + kLanes));
  }
  if (i + kLanes <= count) some = simd::max(some, simd::load(scores + i));
  return simd::largest(simd::max(some, others));
}

/// scores = exp((scores - most) · scale); returns their sum.
float exponentiate(float* scores, std::int64_t count, float most, float scale) {
  return transform(scores, count,
                   [&](Floats values) { return simd::exp((values - most) * scale); });
}

}  // namespace

void softmax(const SoftmaxRow& row, float* scores) {
  const bool plain = row.bias == nullptr && row.key_mask == nullptr && row.soft_cap == 0 &&
                     row.slope == 0 && row.sink == nullptr;
  if (!plain) prepare(row, scores);
  float* const shown = scores + row.first;
  const std::int64_t count = row.visible - row.first;
  float most = largest(shown, count);
  if (row.sink != nullptr) most = std::max(most, *row.sink);
  if (most == kMinusInfinity) {
    std::fill_n(scores, row.keys, 1.0F / static_cast<float>(row.keys));
    return;
  }
  float sum = exponentiate(shown, count, most, plain ? row.scale : 1.0F);
  if (row.sink != nullptr) sum += std::exp(*row.sink - most);
  multiply(shown, count, 1.0F / sum);
  std::fill(scores, shown, 0.0F);
  std::fill(scores + row.visible, scores + row.keys, 0.0F);
}

float RunningSoftmax::add(const SoftmaxRow& piece, float* scores) {
  prepare(piece, scores);
  const float before = most;
  float* const shown = scores + piece.first;
  const std::int64_t count = piece.visible - piece.first;
  most = std::max(before, largest(shown, count));
  const float shrink = std::exp(before - most);
  total = total * shrink + exponentiate(shown, count, most, 1.0F);
  std::fill(scores, shown, 0.0F);
  std::fill(scores + piece.visible, scores + piece.keys, 0.0F);
  return shrink;
}

void softmax_rows(float* scores, std::int64_t rows, std::int64_t keys) {
#pragma omp parallel for if (rows * keys >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    softmax({.keys = keys, .visible = keys}, scores + row * keys);
  }
}

}  // namespace headroom::measured
