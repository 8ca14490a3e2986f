// Compressed keys, and attention's operands of a window of tokens and compressed keys (DeepSeek-V4,
// transformers' models/deepseek_v4).
#pragma once

#include <cstdint>

namespace headroom::measured {

/// Operands of a compressor. A token's row is `[key | gate]` of `series · width` features each:
/// with two series the first is of the next window, the second of the token's own.
struct CompressionArguments {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  std::int64_t past = 0;  ///< tokens before them
  std::int64_t rate = 0;  ///< tokens of a window
  std::int64_t series = 1;
  std::int64_t width = 0;
  std::int64_t out_entries = 0;  ///< rows of a sequence in the result, at least those completed
  const float* rows = nullptr;   ///< [batch, tokens, 2·series·width]
  const float* bias = nullptr;   ///< [rate, series·width], added to the gates of a window
  float* state = nullptr;        ///< [batch, state_floats]; null for none before and after
  [[nodiscard]] std::int64_t row_floats() const { return 2 * series * width; }
  /// Rows of the window that is open, and of the one before it the first series.
  [[nodiscard]] std::int64_t state_floats() const {
    return (series - 1) * rate * 2 * width + (rate - 1) * row_floats();
  }
  /// Windows that the tokens complete.
  [[nodiscard]] std::int64_t new_entries() const { return (past + tokens) / rate - past / rate; }
};

/// out [batch, out_entries, width]: for each window that the tokens complete, the sum of keys
/// weighted by a softmax over its gates, feature by feature; with two series over the window before
/// it too. Other rows are not written.
void compress_keys(const CompressionArguments& args, float* out);

/// Replaces the state by the rows that later windows need.
void keep_open_window(const CompressionArguments& args);

/// The keys that attention sees: tokens, of which a query sees a window, and compressed keys.
struct MixedKeys {
  std::int64_t batch = 1;
  std::int64_t queries = 0;
  std::int64_t past = 0;  ///< tokens before the first query's position
  std::int64_t width = 0;
  std::int64_t window = 0;        ///< tokens that a query sees
  bool cached = false;            ///< the tokens are those of the window, in any order
  const float* tokens = nullptr;  ///< [batch, token_keys, width], in its stride
  std::int64_t token_keys = 0;
  std::int64_t token_stride = 0;
  const float* entries = nullptr;  ///< [batch, entry_keys, width], in its stride
  std::int64_t entry_keys = 0;
  std::int64_t entry_stride = 0;
  std::int64_t rate = 1;          ///< tokens of an entry
  const float* choice = nullptr;  ///< [batch, queries, entry_keys], an indexer's; null for all

  [[nodiscard]] std::int64_t keys() const { return token_keys + entry_keys; }
};

/// keys [batch, keys, width]: those of tokens, then the compressed ones.
void gather_keys(const MixedKeys& mixed, float* keys);

/// mask [batch, queries, keys]: 0 for keys that a query sees, -infinity for others.
void mask_keys(const MixedKeys& mixed, float* mask);

}  // namespace headroom::measured
