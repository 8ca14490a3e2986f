#include "cache_pool.h"

#include <limits>
#include <utility>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// Blocks of the longest sequence whose bytes are kept: 16,777,216 tokens in blocks of 16.
constexpr std::int64_t kMostKept = std::int64_t{1} << 20U;

}  // namespace

CacheBytes::CacheBytes(Planner& planner, const PlanChoice& choice, std::int64_t block_tokens)
    : planner_(&planner), choice_(choice), block_(block_tokens) {}

std::int64_t CacheBytes::of_blocks(std::int64_t blocks) const {
  const Load load{choice_.parallel.data, blocks * block_.value()};
  const Integer bytes = planner_->evaluate(choice_, load).memory.kv_cache;
  if (bytes > std::numeric_limits<std::int64_t>::max()) {
    throw Error(ErrorCode::overflow, "the KV-cache of one request exceeds 2^63 bytes");
  }
  return static_cast<std::int64_t>(bytes);
}

std::int64_t CacheBytes::of_tokens(std::int64_t tokens) {
  if (tokens == 0) return 0;
  const std::int64_t blocks = block_.quotient_up(tokens);
  if (blocks > kMostKept) return of_blocks(blocks);
  const auto index = static_cast<std::size_t>(blocks);
  if (index >= bytes_.size()) bytes_.resize(index + 1 + index / 2, -1);
  if (bytes_[index] < 0) bytes_[index] = of_blocks(blocks);
  return bytes_[index];
}

std::int64_t CacheBytes::counted(std::int64_t tokens) const {
  return tokens == 0 ? 0 : of_blocks(block_.quotient_up(tokens));
}

CachePool::CachePool(CacheBytes& bytes, std::int64_t capacity_bytes, std::int64_t shared_tokens)
    : bytes_(&bytes),
      capacity_bytes_(capacity_bytes),
      shared_tokens_(shared_tokens),
      shared_bytes_(bytes.of_tokens(shared_tokens)),
      used_bytes_(shared_bytes_) {}

std::int64_t CachePool::own_bytes(std::int64_t tokens) {
  return std::max<std::int64_t>(0, bytes_->of_tokens(tokens) - shared_bytes_);
}

bool CachePool::reserve(std::int64_t tokens, std::int64_t& held_bytes) {
  const std::int64_t more = own_bytes(tokens) - held_bytes;
  if (more <= 0) return true;
  if (more > capacity_bytes_ - used_bytes_) return false;
  used_bytes_ += more;
  held_bytes += more;
  return true;
}

void CachePool::release(std::int64_t& held_bytes) { used_bytes_ -= std::exchange(held_bytes, 0); }

bool CachePool::can_hold(std::int64_t tokens) {
  return own_bytes(tokens) <= capacity_bytes_ - shared_bytes_;
}

std::int64_t CachePool::longest(std::int64_t limit) const {
  if (shared_bytes_ > capacity_bytes_) return 0;
  const auto fits = [this](std::int64_t tokens) {
    return bytes_->counted(tokens) <= capacity_bytes_;
  };
  return largest_satisfying(fits, limit);
}

std::int64_t CachePool::sequences(std::int64_t tokens) {
  const std::int64_t each = own_bytes(tokens);
  return each == 0 ? 0 : (capacity_bytes_ - shared_bytes_) / each;
}

double CachePool::occupied(std::int64_t more_bytes) const {
  if (capacity_bytes_ <= 0) return 0;
  return static_cast<double>(used_bytes_ + more_bytes) / static_cast<double>(capacity_bytes_);
}

}  // namespace headroom::detail
