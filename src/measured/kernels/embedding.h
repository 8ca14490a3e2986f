// Embedding lookup, and tables of sinusoidal positions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace headroom::measured {

/// Copies one row of a table to `to`, widened to float32.
using RowReader = std::function<void(std::int64_t row, float* to)>;

/// out [tokens, width] = scale · word[id] + position[p] + type[t]. Tables are row-major, `width`
/// floats per row; ids must be valid rows.
struct TokenEmbeddingArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  RowReader word_row;
  const std::int64_t* ids = nullptr;      ///< [batch, seq_len]
  float scale = 1;                        ///< of the word embedding only
  const float* token_scales = nullptr;    ///< [batch, seq_len], further factors; null for none
  const float* position_table = nullptr;  ///< null for none
  const std::int64_t* position_ids =
      nullptr;  ///< [batch, seq_len]; null: first_position, first_position + 1, …
  std::int64_t first_position = 0;         ///< of every sequence, if position_ids is null
  const float* type_table = nullptr;       ///< null for none
  const std::int64_t* type_ids = nullptr;  ///< [batch, seq_len]; null: all 0
};

void embed_tokens(const TokenEmbeddingArguments& args, float* out);

/// Table [positions, width]: sin(p / 10000^(2i/width)) at 2i, its cosine at 2i + 1 (arXiv
/// 1706.03762, 3.5).
[[nodiscard]] std::vector<float> sinusoidal_positions(std::int64_t positions, std::int64_t width);

/// Like sinusoidal_positions, with all sines in the first half of a row and all cosines in the
/// second, as in Marian and Pegasus.
[[nodiscard]] std::vector<float> sinusoidal_halves(std::int64_t positions, std::int64_t width);

/// Sines in the first half of each row and cosines in the second, at the frequencies
/// 10000^(-i / (width / 2 - 1)). Source: get_embedding of M2M100SinusoidalPositionalEmbedding,
/// transformers, models/m2m_100.
[[nodiscard]] std::vector<float> tensor2tensor_positions(std::int64_t positions,
                                                         std::int64_t width);

}  // namespace headroom::measured
