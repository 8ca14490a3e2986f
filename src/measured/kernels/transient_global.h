// Attention in blocks of queries to the keys of three blocks and to transient global tokens, as
// LongT5's encoder runs it (arXiv 2112.07916, section 3.1.2).
#pragma once

#include <cstdint>
#include <vector>

#include "attention.h"
#include "relative_bias.h"

namespace headroom::measured {

/// Blocks of tokens that leave a transient global token each.
struct TransientGlobalBlocks {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  std::int64_t globals = 0;         ///< per sequence
  std::vector<std::int64_t> block;  ///< [batch, tokens], -1 for a token of none
  std::vector<std::int64_t> used;   ///< [batch]: global tokens that some token belongs to
};

/// Blocks of `size` tokens of sequences [batch, tokens]. The tokens behind the last whole block
/// belong to it, those of padding, where `key_mask` is 0 (null for none), to no block.
[[nodiscard]] TransientGlobalBlocks transient_global_blocks(const std::uint8_t* key_mask,
                                                            std::int64_t batch, std::int64_t tokens,
                                                            std::int64_t size);

/// Adds the rows [batch, tokens, width] of each block to sums [batch, globals, width].
void sum_transient_blocks(const TransientGlobalBlocks& blocks, std::int64_t width,
                          const float* rows, float* sums);

struct TransientGlobalArguments {
  /// Attention of one block, without pointers: `queries` is the block's size, `keys` three times
  /// that and the global tokens.
  AttentionArguments block;
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  const float* queries = nullptr;            ///< [batch, tokens, heads·head_dim]
  const float* key_values = nullptr;         ///< [batch, tokens, K | V]
  const float* global_key_values = nullptr;  ///< [batch, globals, K | V]
  const float* bias = nullptr;               ///< [batch, blocks, heads, block, keys]

  [[nodiscard]] std::int64_t blocks() const { return (tokens + block.queries - 1) / block.queries; }
  [[nodiscard]] std::int64_t globals() const { return block.keys - 3 * block.queries; }
  [[nodiscard]] std::int64_t query_width() const { return block.heads * block.head_dim; }
  [[nodiscard]] std::int64_t key_value_width() const {
    return block.kv_heads * (block.head_dim + block.value_head_dim);
  }
  /// Floats of the queries, keys and values of one block.
  [[nodiscard]] std::int64_t scratch_floats() const {
    return block.queries * query_width() + block.keys * key_value_width();
  }
  /// Floats of the context of one block.
  [[nodiscard]] std::int64_t context_floats() const {
    return block.queries * block.heads * block.value_head_dim;
  }
};

/// Biases of the encoder's tables [num_buckets, heads], of tokens and of global tokens, with a mask
/// of padding and of keys at least a block away.
struct TransientGlobalBias {
  RelativeBiasArguments tokens;
  const float* global_table = nullptr;
  std::int64_t block = 0;
  const std::uint8_t* key_mask = nullptr;  ///< [batch, tokens], 0 for padding; null for none
};

/// Fills out [batch, blocks, heads, block, 3·block + globals].
void fill_transient_global_bias(const TransientGlobalBias& args,
                                const TransientGlobalBlocks& blocks, float* out);

/// scores [batch, blocks, heads, block, keys]. `scratch` has scratch_floats(). Returns the FLOPs of
/// the GEMM.
std::int64_t transient_global_scores(const TransientGlobalArguments& args, float* scratch,
                                     float* scores);

/// Turns scores into probabilities, in place.
void transient_global_softmax(const TransientGlobalArguments& args, float* scores);

/// out [batch, tokens, heads·value_head_dim]. `context` has context_floats(). Returns the FLOPs of
/// the GEMM.
std::int64_t transient_global_context(const TransientGlobalArguments& args,
                                      const float* probabilities, float* scratch, float* context,
                                      float* out);

}  // namespace headroom::measured
