// The KV-cache of one replica: a pool of bytes that sequences draw on block by block. Internal to
// src/serve.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/serve.h"

namespace headroom::detail {

/// Bytes of one sequence's cache on the rank that has most of it, by whole blocks of tokens. Counts
/// what the planner counts: latent and window caches, states, the policy of an engine.
class CacheBytes {
 public:
  /// `planner` must outlive it.
  CacheBytes(Planner& planner, const PlanChoice& choice, std::int64_t block_tokens);

  /// Of `tokens` cached tokens; 0 for none.
  std::int64_t of_tokens(std::int64_t tokens);

 private:
  Planner* planner_;
  PlanChoice choice_;
  std::int64_t block_tokens_;
  std::vector<std::int64_t> bytes_;  ///< by blocks; −1: not counted yet
};

/// Bytes of a replica that sequences reserve and give back.
class CachePool {
 public:
  /// All sequences share the first `shared_tokens` tokens, which are held once.
  CachePool(CacheBytes bytes, std::int64_t capacity_bytes, std::int64_t shared_tokens);

  /// Grows a reservation from `held_bytes`, which it updates, to `tokens` tokens. False, without a
  /// change, if the pool has too little left.
  bool reserve(std::int64_t tokens, std::int64_t& held_bytes);
  void release(std::int64_t& held_bytes);
  /// True if a sequence of this many tokens fits into the empty pool.
  [[nodiscard]] bool can_hold(std::int64_t tokens);
  /// The longest sequence that fits into the empty pool, at most `limit` tokens.
  [[nodiscard]] std::int64_t longest(std::int64_t limit);
  /// Sequences of `tokens` tokens that fit at once.
  [[nodiscard]] std::int64_t sequences(std::int64_t tokens);

  [[nodiscard]] std::int64_t shared_tokens() const { return shared_tokens_; }
  /// Occupied fraction, 0 to 1.
  [[nodiscard]] double occupied() const;

 private:
  std::int64_t own_bytes(std::int64_t tokens);

  CacheBytes bytes_;
  std::int64_t capacity_bytes_;
  std::int64_t shared_tokens_;
  std::int64_t shared_bytes_;
  std::int64_t used_bytes_;
};

}  // namespace headroom::detail
