// Looking up rows of tables, and making the table of sinusoidal positions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace headroom::measured {

/// Copies one row of a table, widened to float32 where it is stored in less.
using RowReader = std::function<void(std::int64_t row, float* to)>;

/// out [tokens, width] = scale · word[id] + position[p] + type[t]. Tables hold rows of `width`;
/// ids must lie within them.
struct TokenEmbeddingArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  RowReader word_row;
  const std::int64_t* ids = nullptr;           ///< [batch, seq_len]
  float scale = 1;                             ///< of the word's row alone
  const float* position_table = nullptr;       ///< null for none
  const std::int64_t* position_ids = nullptr;  ///< [batch, seq_len]; null: counted on
  std::int64_t first_position = 0;             ///< of a sequence's first token, where counted
  const float* type_table = nullptr;           ///< null for none
  const std::int64_t* type_ids = nullptr;      ///< [batch, seq_len]; null: all of type 0
};

void embed_tokens(const TokenEmbeddingArguments& args, float* out);

/// [positions, width]: sin(p / 10000^(2i/width)) at 2i, its cosine at 2i + 1
/// (arXiv 1706.03762, 3.5).
[[nodiscard]] std::vector<float> sinusoidal_positions(std::int64_t positions, std::int64_t width);

/// The same with all sines in the first half of a row and all cosines in the second, as Marian and
/// Pegasus have them.
[[nodiscard]] std::vector<float> sinusoidal_halves(std::int64_t positions, std::int64_t width);

}  // namespace headroom::measured
