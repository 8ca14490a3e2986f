#include "softmax.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "bfloat16.h"
#include "parallel.h"
#include "vector_math.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// row = map(row); returns the sum of the results.
template <class Map>
float transform(float* row, std::int64_t count, const Map& map) {
  if (count < kLanes) {
    const Floats value = map(simd::load_first(row, count));
    simd::store_first(row, value, count);
    return simd::sum(simd::lane_indices() < static_cast<std::int32_t>(count) ? value : Floats{});
  }
  const auto remainder = static_cast<std::int32_t>(count % kLanes);
  float* const end = row + count;
  const Floats last = simd::load(end - kLanes);  // read before the loop overwrites part of it
  Floats total = {};
  for (; row + kLanes <= end; row += kLanes) {
    const Floats value = map(simd::load(row));
    simd::store(row, value);
    total += value;
  }
  if (remainder > 0) {
    const Floats value = map(last);
    simd::store(end - kLanes, value);
    total +=
        simd::lane_indices() >= static_cast<std::int32_t>(kLanes) - remainder ? value : Floats{};
  }
  return simd::sum(total);
}

void multiply(float* values, std::int64_t count, float factor) {
  transform(values, count, [&](Floats x) { return x * factor; });
}

/// Adds the ALiBi term of every key's index, or of its distance to the query.
void add_alibi(const SoftmaxRow& row, float* scores) {
  for (std::int64_t key = row.first; key < row.visible; ++key) {
    const std::int64_t index = row.index + key;
    const std::int64_t place = row.query ? -std::abs(index - *row.query) : index;
    const float term = row.slope * static_cast<float>(place);
    scores[key] +=
        row.alibi_order == AlibiOrder::after_scale ? term : round_to_bfloat16(term) * row.scale;
  }
}

/// Scales, caps, adds ALiBi and bias, and masks padding; the scores then need no further scale.
void modify_scores(const SoftmaxRow& row, float* scores) {
  const std::int64_t count = row.visible - row.first;
  float* const visible = scores + row.first;
  multiply(visible, count, row.scale);
  if (row.soft_cap > 0) {
    transform(visible, count,
              [&](Floats x) { return simd::tanh(x / row.soft_cap) * row.soft_cap; });
  }
  if (row.slope != 0) add_alibi(row, scores);
  if (row.bias != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) visible[i] += row.bias[row.first + i];
  }
  if (row.key_mask == nullptr) return;
  for (std::int64_t key = row.first; key < row.visible; ++key) {
    if (row.key_mask[key] == 0) scores[key] = kMinusInfinity;
  }
}

float largest(const float* scores, std::int64_t count) {
  if (count < kLanes) {
    float maximum = kMinusInfinity;
    for (std::int64_t i = 0; i < count; ++i) maximum = std::max(maximum, scores[i]);
    return maximum;
  }
  // The last vector overlaps the one before it, so that it covers the remainder.
  Floats values = simd::load(scores + count - kLanes);
  Floats others = values;
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    values = simd::max(values, simd::load(scores + i));
    others = simd::max(others, simd::load(scores + i + kLanes));
  }
  if (i + kLanes <= count) values = simd::max(values, simd::load(scores + i));
  return simd::largest(simd::max(values, others));
}

/// scores = exp((scores - maximum) · scale); returns their sum.
float exponentiate(float* scores, std::int64_t count, float maximum, float scale) {
  return transform(scores, count, [&](Floats x) { return simd::exp((x - maximum) * scale); });
}

}  // namespace

void softmax(const SoftmaxRow& row, float* scores) {
  const bool plain = row.bias == nullptr && row.key_mask == nullptr && row.soft_cap == 0 &&
                     row.slope == 0 && row.sink == nullptr;
  if (!plain) modify_scores(row, scores);
  float* const visible = scores + row.first;
  const std::int64_t count = row.visible - row.first;
  float maximum = largest(visible, count);
  if (row.sink != nullptr) maximum = std::max(maximum, *row.sink);
  if (maximum == kMinusInfinity) {
    std::fill_n(scores, row.keys, 1.0F / static_cast<float>(row.keys));
    return;
  }
  float sum = exponentiate(visible, count, maximum, plain ? row.scale : 1.0F);
  if (row.sink != nullptr) sum += std::exp(*row.sink - maximum);
  multiply(visible, count, 1.0F / sum);
  std::fill(scores, visible, 0.0F);
  std::fill(scores + row.visible, scores + row.keys, 0.0F);
}

float RunningSoftmax::add(const SoftmaxRow& piece, float* scores) {
  modify_scores(piece, scores);
  const float before = maximum;
  float* const visible = scores + piece.first;
  const std::int64_t count = piece.visible - piece.first;
  maximum = std::max(before, largest(visible, count));
  const float rescale = std::exp(before - maximum);
  total = total * rescale + exponentiate(visible, count, maximum, 1.0F);
  std::fill(scores, visible, 0.0F);
  std::fill(scores + piece.visible, scores + piece.keys, 0.0F);
  return rescale;
}

void softmax_rows(float* scores, std::int64_t rows, std::int64_t keys) {
#pragma omp parallel for if (rows * keys >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    softmax({.keys = keys, .visible = keys}, scores + row * keys);
  }
}

}  // namespace headroom::measured
