// Blocks of work of fused attention. A lane is a (query, head) pair; the lanes of a block share a
// KV head, so each key is read once for all of them.
#pragma once

#include <array>
#include <cstdint>

#include "attention.h"
#include "parallel.h"
#include "simd.h"
#include "softmax.h"

namespace headroom::measured {

/// Maximum lanes per block, and keys per tile.
inline constexpr std::int64_t kBlockLanes = 4 * simd::kLanes;
inline constexpr std::int64_t kTileKeys = 64;
/// Blocks of at most so many lanes use dot products; larger ones vectorise over lanes.
inline constexpr std::int64_t kFewLanes = 4;

/// One block: lanes of one KV head of one sequence, and its scratch memory.
struct AttentionBlock {
  const AttentionArguments& args;
  std::int64_t batch;
  std::int64_t kv_head;
  Range lanes;
  float* queries;  ///< scratch, head_dim · kBlockLanes floats
  float* weights;  ///< scratch, kTileKeys · kBlockLanes floats: scores, then their exponentials
  float* sums;     ///< scratch, value_head_dim · kBlockLanes floats: weighted values

  /// Query heads per KV head. 32 bits, like all its dividends: a 64-bit division takes several
  /// times as long, and there is one per lane.
  [[nodiscard]] std::uint32_t group() const {
    return static_cast<std::uint32_t>(args.heads) / static_cast<std::uint32_t>(args.kv_heads);
  }
  [[nodiscard]] std::int64_t query(std::int64_t lane) const {
    return static_cast<std::uint32_t>(lanes.begin + lane) / group();
  }
  [[nodiscard]] std::int64_t head(std::int64_t lane) const {
    return kv_head * group() + static_cast<std::uint32_t>(lanes.begin + lane) % group();
  }
  [[nodiscard]] const float* key(std::int64_t index) const {
    return args.k + batch * args.k_batch_stride + index * args.k_stride +
           kv_head * args.k_head_stride;
  }
  [[nodiscard]] const float* value(std::int64_t index) const {
    return args.v + batch * args.v_batch_stride + index * args.v_stride +
           kv_head * args.v_head_stride;
  }
  [[nodiscard]] const float* query_row(std::int64_t lane) const {
    return args.q + batch * args.q_batch_stride + query(lane) * args.q_stride +
           head(lane) * args.head_dim;
  }
  /// Bias row of a lane, [keys]; null for none.
  [[nodiscard]] const float* bias_row(std::int64_t lane) const {
    if (args.bias == nullptr) return nullptr;
    return args.bias + batch * args.bias_batch_stride +
           (head(lane) * args.queries + query(lane)) * args.keys;
  }
  /// Padding mask of the sequence, [keys]; null for none.
  [[nodiscard]] const std::uint8_t* key_mask() const {
    return args.key_mask == nullptr ? nullptr : args.key_mask + batch * args.keys;
  }
  /// First key that any lane sees.
  [[nodiscard]] std::int64_t keys_begin() const { return first_key(args, batch, query(0)); }
  /// End of the keys that any lane sees.
  [[nodiscard]] std::int64_t keys_end() const {
    return visible_keys(args, batch, query(lanes.size() - 1));
  }
  [[nodiscard]] float* out(std::int64_t lane) const {
    return args.out + batch * args.out_batch_stride + query(lane) * args.out_stride +
           head(lane) * args.value_head_dim;
  }
};

/// Stores the mean of all values: the output of a lane that sees only padding.
void store_mean(const AttentionBlock& block, std::int64_t lane);

/// Attention of a block of at most kFewLanes lanes, with dot products.
void attend_few(const AttentionBlock& block);

/// The online softmax of each lane of such a block.
using FewRunning = std::array<RunningSoftmax, kFewLanes>;
/// That of no keys yet; attention sinks have begun it.
[[nodiscard]] FewRunning begin_few(const AttentionBlock& block);
/// Sets the sums of the block to the values of keys `all` that its lanes weigh, relative to
/// `running`.
void accumulate_few(const AttentionBlock& block, Range all, FewRunning& running);

/// Attention of a block of any number of lanes, vectorised over lanes.
void attend_lanes(const AttentionBlock& block);

}  // namespace headroom::measured
