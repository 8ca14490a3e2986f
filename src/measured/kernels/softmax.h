// Softmax over the keys of one row of scores, with scale, soft cap, ALiBi, bias and masks.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "headroom/model_spec.h"

namespace headroom::measured {

struct SoftmaxRow {
  std::int64_t keys = 0;
  /// End of the visible keys under the causal mask; later keys get probability zero.
  std::int64_t visible = 0;
  std::int64_t first = 0;  ///< first visible key of a window, at maximum `visible`
  float scale = 1;         ///< positive; multiplies the scores before all else
  float soft_cap = 0;      ///< then score = cap·tanh(score / cap); 0: no cap
  float slope = 0;  ///< ALiBi: times a key's index, added to the scores as `alibi_order` says
  AlibiOrder alibi_order = AlibiOrder::after_scale;
  std::int64_t index = 0;  ///< index of the first of these keys, for `slope`
  /// Index of the query, whose distance `slope` then multiplies, negated; empty: the key's index.
  std::optional<std::int64_t> query{};
  const float* sink =
      nullptr;  ///< attention sink: one more score in the sum, without a probability
  const float* bias = nullptr;  ///< [keys], added to the scaled scores; null for none
  /// [keys], 0 for padding; null for none.
  const std::uint8_t* key_mask = nullptr;
};

/// Turns scores [keys] into probabilities, in place.
///
/// Padding and masked keys get probability zero: Hugging Face's eager attention adds the lowest
/// float32 to their scores, and their exponentials become zero. In a row without any visible key
/// all scores become that same number there, so softmax is uniform over *all* keys, masked ones
/// too. This function returns the same.
void softmax(const SoftmaxRow& row, float* scores);

/// Online softmax of a row that comes in pieces (arXiv 2205.14135, 3.1).
struct RunningSoftmax {
  float maximum = std::numeric_limits<float>::lowest();  ///< of all scores so far
  float total = 0;                                       ///< sum of exp(score - maximum)

  /// Replaces the scores of the next piece by exp(score - maximum), with the maximum updated.
  /// Returns the factor that rescales sums weighted by earlier pieces.
  float add(const SoftmaxRow& piece, float* scores);

  /// Starts with an attention sink: a score without a value.
  void begin_with(float sink) {
    maximum = sink;
    total = 1;
  }
};

/// Softmax of every row of scores [rows, keys]; threads share the rows.
void softmax_rows(float* scores, std::int64_t rows, std::int64_t keys);

}  // namespace headroom::measured
