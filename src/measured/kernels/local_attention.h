// Attention of chunks of rows in clips of sound, with relative positions (transformers,
// Gemma3nAudioAttention and Gemma4AudioAttention; Appendix B of arXiv 1901.02860).
#pragma once

#include <cstdint>
#include <span>

#include "headroom/layer_spec.h"

namespace headroom::measured {

/// Operands of one layer; see LocalAttention. Rows have `heads`·`head_dim` values.
struct LocalAttentionArguments {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t chunk = 0;
  std::int64_t earlier = 0;
  std::int64_t later = 0;
  std::int64_t positions = 0;
  float soft_cap = 0;  ///< 0: no cap
  ConformerKeys keys = ConformerKeys::scaled;
  std::span<const std::int64_t> clips{};  ///< rows of each
  const float* query = nullptr;           ///< [rows, heads·head_dim], as the two below
  const float* key = nullptr;
  const float* value = nullptr;
  const float* position_key = nullptr;  ///< [positions, heads·head_dim]
  const float* scale = nullptr;         ///< [head_dim], before softplus

  [[nodiscard]] std::int64_t context() const { return chunk + earlier + later; }
  [[nodiscard]] std::int64_t row_width() const { return heads * head_dim; }
  /// Of each head: its queries, keys, values and position keys, and both scores.
  [[nodiscard]] std::int64_t scratch_of_head() const {
    return (chunk + 2 * context() + positions) * head_dim + chunk * (context() + positions);
  }
  [[nodiscard]] std::int64_t scratch_floats() const { return heads * scratch_of_head(); }
};

/// out [rows, heads·head_dim]. Returns the FLOPs of the GEMMs: of every query with all keys of its
/// chunk, with the keys of the positions, and with all values.
std::int64_t local_attention(const LocalAttentionArguments& args, float* scratch, float* out);

}  // namespace headroom::measured
