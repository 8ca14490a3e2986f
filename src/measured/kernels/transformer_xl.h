// Scores of trained biases, relative positions and segments in the attention of Transformer-XL and
// XLNet (arXiv 1901.02860, section 3.3; 1906.08237, section 2.5).
#pragma once

#include <cstdint>

#include "headroom/op.h"

namespace headroom::measured {

/// Rows of sinusoids: sines in the first half of each row, cosines in the second.
struct RelativeSinusoidArguments {
  std::int64_t batch = 1;
  std::int64_t positions = 0;
  std::int64_t width = 0;
  std::int64_t most = 0;  ///< greater distances are clamped to it; 0: none are
  SinusoidRows rows = SinusoidRows::both_sides;
};

/// Fills out [batch, positions, width]; row i is for the distance positions/2 - i, or, of earlier
/// positions alone, positions - 1 - i.
void fill_relative_sinusoids(const RelativeSinusoidArguments& args, float* out);

/// Operands of one layer. `contents` are rows [Q | K | V] of heads·head_dim each.
struct TransformerXlArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t tokens = 0;
  float scale = 1;                  ///< of the scores
  const float* contents = nullptr;  ///< [batch, tokens, row_width]
  std::int64_t row_width = 0;
  const float* positions = nullptr;     ///< [batch, 2·tokens, heads·head_dim]
  const float* content_bias = nullptr;  ///< [heads, head_dim], as the two below
  const float* position_bias = nullptr;
  const float* segment_bias = nullptr;
  const float* segments = nullptr;            ///< [2, heads, head_dim]: of pairs in one, and in two
  const std::int64_t* segment_ids = nullptr;  ///< [batch, tokens]; null: all tokens are in one

  [[nodiscard]] std::int64_t scratch_floats() const {
    return 2 * tokens * tokens + head_dim * 3 * tokens + tokens;
  }
};

/// Fills bias [batch, heads, tokens, tokens]. Returns the FLOPs of its GEMMs, with a one-hot row of
/// segments for every pair as in the reference code.
std::int64_t transformer_xl_bias(const TransformerXlArguments& args, float* scratch, float* bias);

}  // namespace headroom::measured
