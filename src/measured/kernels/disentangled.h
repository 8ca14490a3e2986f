// Scores of contents with relative positions in DeBERTa's attention (arXiv 2006.03654,
// section 3.1).
#pragma once

#include <cstdint>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// Weight `[heads·head_dim, width]` and bias `[heads·head_dim]`, if any, of a projection of the
/// table.
struct PositionProjection {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

/// Operands of one layer. `contents` are rows [Q | K | V] of heads·head_dim each.
struct DisentangledArguments {
  DisentangledSpec spec;
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t tokens = 0;
  std::int64_t width = 0;           ///< of the table
  float scale = 1;                  ///< of the scores
  const float* contents = nullptr;  ///< [batch, tokens, row_width]
  std::int64_t row_width = 0;
  const float* table = nullptr;  ///< [positions, width]
  PositionProjection key;        ///< null without the term, unless projections are shared
  PositionProjection query;

  [[nodiscard]] std::int64_t projected_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t scratch_floats() const;
};

/// Row of the table for a query `distance` positions after its key. Buckets follow the reference
/// code's float32 arithmetic: make_log_bucket_position, transformers, models/deberta_v2.
[[nodiscard]] std::int64_t position_row(const DisentangledSpec& spec, std::int64_t distance);

/// Fills bias [batch, heads, tokens, tokens]. Returns the FLOPs of its GEMMs.
std::int64_t disentangled_bias(const DisentangledArguments& args, float* scratch, float* bias);

}  // namespace headroom::measured
