// Softmax over the keys of one row of scores, with everything that is added to scores before it.
#pragma once

#include <cstdint>
#include <limits>

#include "headroom/model_spec.h"

namespace headroom::measured {

struct SoftmaxRow {
  std::int64_t keys = 0;
  /// Keys that the causal mask shows, from the first; the others get probability zero.
  std::int64_t visible = 0;
  std::int64_t first = 0;  ///< the first key that a window shows, at most `visible`
  float scale = 1;         ///< positive; scores are multiplied by it before all else
  float soft_cap = 0;      ///< then they become cap·tanh(score / cap); 0: they do not
  float slope = 0;         ///< times a key's index, added to the scores by `alibi_order`
  AlibiOrder alibi_order = AlibiOrder::after_scale;
  std::int64_t index = 0;       ///< of the first of these keys, for its slope
  const float* sink = nullptr;  ///< a further score that takes part, with no probability to store
  const float* bias = nullptr;  ///< [keys], added to the scaled scores; null for none
  /// [keys]: 0 for padding. Null for none.
  const std::uint8_t* key_mask = nullptr;
};

/// scores [keys] become probabilities.
///
/// Padding and hidden keys get probability zero: adding the least float32 to their scores, as
/// Hugging Face's eager attention does, makes their exponentials zero. In a row where no key is
/// left, all scores become that same number there, and its softmax is uniform over *all* keys,
/// hidden ones too; so it is here.
void softmax(const SoftmaxRow& row, float* scores);

/// The softmax of a row that comes in pieces (arXiv 2205.14135, 3.1).
struct RunningSoftmax {
  float most = std::numeric_limits<float>::lowest();  ///< of the scores so far
  float total = 0;                                    ///< of their exponentials about `most`

  /// The next piece's scores become exponentials about the new maximum. Returns what sums that
  /// were weighted by earlier ones are to be multiplied by.
  float add(const SoftmaxRow& piece, float* scores);

  /// Begins with a score that has no value.
  void begin_with(float sink) {
    most = sink;
    total = 1;
  }
};

/// Every row of scores [rows, keys], over the threads.
void softmax_rows(float* scores, std::int64_t rows, std::int64_t keys);

}  // namespace headroom::measured
