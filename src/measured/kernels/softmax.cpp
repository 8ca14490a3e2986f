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

/// What is added to a scaled score by its key's place.
float alibi(const SoftmaxRow& row, std::int64_t key) {
  const float lowered = row.slope * static_cast<float>(row.index + key);
  return row.alibi_order == AlibiOrder::behind_scale ? lowered
                                                     : rounded_to_bfloat16(lowered) * row.scale;
}

/// Scales, caps, adds what is to be added and hides padding, so that the scale is 1 afterwards.
void prepare(const SoftmaxRow& row, float* scores) {
  for (std::int64_t key = row.first; key < row.visible; ++key) {
    float score = scores[key] * row.scale;
    if (row.soft_cap > 0) score = std::tanh(score / row.soft_cap) * row.soft_cap;
    score += alibi(row, key);
    if (row.bias != nullptr) score += row.bias[key];
    const bool padding = row.key_mask != nullptr && row.key_mask[key] == 0;
    if (padding) score = kMinusInfinity;
    scores[key] = score;
  }
}

float largest(const float* scores, std::int64_t count) {
  Floats some = simd::broadcast(kMinusInfinity);
  Floats others = some;
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    some = simd::max(some, simd::load(scores + i));
    others = simd::max(others, simd::load(scores + i + kLanes));
  }
  float result = simd::largest(simd::max(some, others));
  for (; i < count; ++i) result = std::max(result, scores[i]);
  return result;
}

/// scores = exp((scores - most) · scale); returns their sum.
float exponentiate(float* scores, std::int64_t count, float most, float scale) {
  Floats total = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats value = simd::exp((simd::load(scores + i) - most) * scale);
    simd::store(scores + i, value);
    total += value;
  }
  float sum = simd::sum(total);
  if (i == count) return sum;
  const Floats last = simd::exp((simd::load_first(scores + i, count - i) - most) * scale);
  simd::store_first(scores + i, last, count - i);
  for (; i < count; ++i) sum += scores[i];
  return sum;
}

void multiply(float* values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
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
