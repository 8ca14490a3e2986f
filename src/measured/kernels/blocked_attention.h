// Attention in blocks of queries to the keys of three blocks, as LongT5's encoder runs it: the
// block before, their own and the next one, with rows of zeros beyond either end of a sequence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention.h"

namespace headroom::measured {

struct BlockedAttentionArguments {
  /// Attention of one block, without pointers to its rows: `queries` is the block's size, `keys`
  /// three times that, `past` the block's size.
  AttentionArguments block;
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  const float* rows = nullptr;  ///< [batch, tokens, row_width]: Q, K and V of all heads
  std::int64_t row_width = 0;
  const std::uint8_t* key_mask = nullptr;  ///< [batch, tokens], 0 for padding; null for none
  std::int64_t least_blocks = 0;           ///< rows of zeros fill up to so many

  [[nodiscard]] std::int64_t blocks() const {
    return std::max(least_blocks, (tokens + block.queries - 1) / block.queries);
  }
  /// Rows of a sequence with those of zeros.
  [[nodiscard]] std::int64_t padded_rows() const { return (blocks() + 2) * block.queries; }
  [[nodiscard]] std::int64_t padded_floats() const { return batch * padded_rows() * row_width; }
  /// Floats of the context of one block.
  [[nodiscard]] std::int64_t context_floats() const {
    return block.queries * block.heads * block.value_head_dim;
  }
};

/// Copies the rows to padded [batch, padded_rows, row_width].
void pad_rows(const BlockedAttentionArguments& args, float* padded);

/// Mask of the padded rows' keys.
[[nodiscard]] std::vector<std::uint8_t> padded_key_mask(const BlockedAttentionArguments& args);

/// scores [batch, blocks, heads, block, 3·block]. Returns the FLOPs of the GEMM.
std::int64_t blocked_scores(const BlockedAttentionArguments& args, const float* padded,
                            float* scores);

/// Turns scores into probabilities, in place. `key_mask` is that of padded_key_mask.
void blocked_softmax(const BlockedAttentionArguments& args,
                     const std::vector<std::uint8_t>& key_mask, float* scores);

/// out [batch, tokens, heads·value_head_dim]. `scratch` has context_floats(). Returns the FLOPs of
/// the GEMM.
std::int64_t blocked_context(const BlockedAttentionArguments& args, const float* padded,
                             const float* probabilities, float* scratch, float* out);

}  // namespace headroom::measured
