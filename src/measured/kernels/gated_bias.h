// Relative position bias with a gate of every query and head (WavLM, arXiv 2110.13900, section
// III-A).
#pragma once

#include <cstdint>

namespace headroom::measured {

/// Operands of one layer; see GatedPositionBias.
struct GatedBiasArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t tokens = 0;
  const float* input = nullptr;        ///< [batch, tokens, heads·head_dim]
  const float* bias = nullptr;         ///< [heads, tokens, tokens]
  const float* weight = nullptr;       ///< [values, head_dim]
  const float* weight_bias = nullptr;  ///< [values]
  const float* scale = nullptr;        ///< [heads]
};

/// Fills out [batch, heads, tokens, tokens]. Returns matrix FLOPs.
std::int64_t gated_position_bias(const GatedBiasArguments& args, float* out);

}  // namespace headroom::measured
