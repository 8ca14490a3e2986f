// Attention in chunks that overlap by half, as Longformer's layers run it (arXiv 2004.05150,
// section 3): every query sees `block` keys on either side, and the tokens with global attention.
#pragma once

#include <cstdint>
#include <vector>

#include "blocked_attention.h"

namespace headroom::measured {

/// Positions of the tokens with global attention, [batch, per_sequence]; -1 where a sequence has
/// fewer.
struct GlobalPositions {
  std::int64_t per_sequence = 0;
  std::vector<std::int64_t> tokens;

  [[nodiscard]] std::int64_t at(std::int64_t item, std::int64_t index) const {
    return tokens[static_cast<std::size_t>(item * per_sequence + index)];
  }
};

/// Positions by a mask [batch, tokens] that is not 0 at them; without those of padding, where
/// `key_mask` is 0 (null for none).
[[nodiscard]] GlobalPositions global_positions(const std::vector<std::uint8_t>& mask,
                                               const std::uint8_t* key_mask, std::int64_t batch,
                                               std::int64_t per_sequence);

struct ChunkArguments {
  BlockedAttentionArguments rows;  ///< in blocks of half a window, `block.queries`
  GlobalPositions globals;

  [[nodiscard]] std::int64_t half() const { return rows.block.queries; }
  /// Width of a row of the scores: those with the global keys, then those of the window.
  [[nodiscard]] std::int64_t columns() const { return globals.per_sequence + 2 * half() + 1; }
  /// Floats of K and V of the global tokens.
  [[nodiscard]] std::int64_t global_floats() const;
  /// Floats of the scores of one chunk, and of one block with the global keys.
  [[nodiscard]] std::int64_t score_scratch_floats() const;
  /// Floats of the context of one block, and of its probabilities with both kinds of keys.
  [[nodiscard]] std::int64_t context_scratch_floats() const;
};

/// Copies K and V of the global tokens from the padded rows, [batch, per_sequence, K | V]; zeros
/// where a sequence has fewer.
void gather_global_keys(const ChunkArguments& args, const float* padded, float* globals);

/// scores [batch, heads, padded tokens, columns]. Returns the FLOPs of both GEMMs.
std::int64_t chunk_scores(const ChunkArguments& args, const float* padded, const float* globals,
                          float* scratch, float* scores);

/// Turns scores into probabilities, in place; those of padding become zero.
void chunk_softmax(const ChunkArguments& args, float* scores);

/// out [batch, tokens, heads·value_head_dim]. Returns the FLOPs of both GEMMs.
std::int64_t chunk_context(const ChunkArguments& args, const float* padded, const float* globals,
                           const float* probabilities, float* scratch, float* out);

}  // namespace headroom::measured
