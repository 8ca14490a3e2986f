// The KV-cache of one replica: a pool of bytes that sequences draw on block by block. Internal to
// src/serve.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "divisor.h"
#include "headroom/serve.h"

namespace headroom::detail {

/// Bytes of one sequence's cache on the rank that has most of it, by whole blocks of tokens. Counts
/// what the planner counts: latent and window caches, states, the policy of an engine.
class CacheBytes {
 public:
  /// `planner` must outlive it.
  CacheBytes(Planner& planner, const PlanChoice& choice, std::int64_t block_tokens);

  /// Of `tokens` cached tokens; 0 for none. Keeps what it counts.
  std::int64_t of_tokens(std::int64_t tokens);
  /// As of_tokens, for numbers that are asked once.
  [[nodiscard]] std::int64_t counted(std::int64_t tokens) const;
  /// As CachePool::next_block.
  [[nodiscard]] std::int64_t next_block(std::int64_t tokens) const {
    return block_.quotient_up(tokens - 1) * block_.value() + 1;
  }

 private:
  [[nodiscard]] std::int64_t of_blocks(std::int64_t blocks) const;

  Planner* planner_;
  PlanChoice choice_;
  Divisor block_;
  std::vector<std::int64_t> bytes_;  ///< by blocks; −1: not counted yet
};

/// Bytes of a replica that sequences reserve and give back.
class CachePool {
 public:
  /// All sequences share the first `shared_tokens` tokens, which are held once. `bytes` must
  /// outlive the pool and its copies.
  CachePool(CacheBytes& bytes, std::int64_t capacity_bytes, std::int64_t shared_tokens);

  /// Grows a reservation from `held_bytes`, which it updates, to `tokens` tokens. False, without a
  /// change, if the pool has too little left.
  bool reserve(std::int64_t tokens, std::int64_t& held_bytes);
  void release(std::int64_t& held_bytes);
  /// True if a sequence of this many tokens fits into the empty pool.
  [[nodiscard]] bool can_hold(std::int64_t tokens);
  /// The longest sequence that fits into the empty pool, at most `limit` tokens.
  [[nodiscard]] std::int64_t longest(std::int64_t limit) const;
  /// Sequences of `tokens` tokens that fit at once.
  [[nodiscard]] std::int64_t sequences(std::int64_t tokens);

  [[nodiscard]] std::int64_t shared_tokens() const { return shared_tokens_; }
  /// Occupied fraction, 0 to 1, with `more_bytes` besides.
  [[nodiscard]] double occupied(std::int64_t more_bytes) const;
  /// True if this many bytes are left.
  [[nodiscard]] bool has_room(std::int64_t bytes) const {
    return bytes <= capacity_bytes_ - used_bytes_;
  }
  /// Bytes that `tokens` tokens take besides those held.
  [[nodiscard]] std::int64_t more_bytes(std::int64_t tokens, std::int64_t held_bytes) {
    return std::max<std::int64_t>(0, own_bytes(tokens) - held_bytes);
  }
  /// The first number of tokens from `tokens` on that begins a block.
  [[nodiscard]] std::int64_t next_block(std::int64_t tokens) const {
    return bytes_->next_block(tokens);
  }

 private:
  std::int64_t own_bytes(std::int64_t tokens);

  CacheBytes* bytes_;
  std::int64_t capacity_bytes_;
  std::int64_t shared_tokens_;
  std::int64_t shared_bytes_;
  std::int64_t used_bytes_;
};

}  // namespace headroom::detail
