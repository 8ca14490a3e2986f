// Choice of a query's best keys: the score of the last of them is found by halving the range of all
// floats, so that every step is a count over whole vectors.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "aligned.h"
#include "indexer.h"
#include "lane_block.h"
#include "parallel.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::Ints;
using simd::kLanes;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
/// Below the order of every number.
constexpr std::int32_t kNoKey = std::numeric_limits<std::int32_t>::min();

/// Integers in the order of the floats; both zeros are equal.
Ints order_of(Floats x) {
  const Ints bits = std::bit_cast<Ints>(x + 0.0F);
  return bits ^ ((bits >> 31) & std::numeric_limits<std::int32_t>::max());
}

/// The keys that a query may see, by the order of their scores.
class RowChoice {
 public:
  explicit RowChoice(const IndexerArguments& args)
      : args_(args), order_(static_cast<std::size_t>(whole_width(args.keys))) {}

  /// Replaces the scores of a query by 0 for the `top_k` best keys and -infinity for all others.
  void run(std::int64_t batch, std::int64_t visible, std::int64_t top_k, float* row) {
    const std::int64_t candidates = read(batch, visible, row);
    const std::int64_t chosen = std::min(top_k, candidates);
    const std::int32_t least = chosen == candidates ? kNoKey + 1 : last_of_best(chosen);
    const float* const order = order_.data();
    for_lanes(args_.keys, [&](const Lanes& keys) {
      const Ints own = std::bit_cast<Ints>(keys.load(order));
      const Floats none = simd::broadcast(kMinusInfinity);
      keys.store(row, own >= least ? Floats{} : none);
    });
    drop_last(count(least) - chosen, least, row);
  }

 private:
  [[nodiscard]] std::int32_t at(std::int64_t key) const {
    return std::bit_cast<std::int32_t>(order_[static_cast<std::size_t>(key)]);
  }

  /// Reads the scores of the keys before `visible`; returns how many are not padding.
  std::int64_t read(std::int64_t batch, std::int64_t visible, const float* row) {
    std::ranges::fill(order_, std::bit_cast<float>(kNoKey));
    for_lanes(visible, [&](const Lanes& keys) {
      keys.store(order_.data(), std::bit_cast<Floats>(order_of(keys.load(row))));
    });
    if (args_.key_mask == nullptr) return visible;
    const std::uint8_t* const mask = args_.key_mask + batch * args_.keys;
    std::int64_t candidates = 0;
    for (std::int64_t key = 0; key < visible; ++key) {
      if (mask[key] == 0) order_[static_cast<std::size_t>(key)] = std::bit_cast<float>(kNoKey);
      candidates += mask[key] == 0 ? 0 : 1;
    }
    return candidates;
  }

  /// Number of keys of at least this order; float32 adds up to 2^24 of them exactly.
  [[nodiscard]] std::int64_t count(std::int32_t least) const {
    Ints counts = {};
    const float* const order = order_.data();
    for (std::int64_t key = 0; key < std::ssize(order_); key += kLanes) {
      counts -= std::bit_cast<Ints>(simd::load(order + key)) >= least;
    }
    return std::llround(simd::sum(__builtin_convertvector(counts, Floats)));
  }

  /// The greatest order that at least `chosen` keys have.
  [[nodiscard]] std::int32_t last_of_best(std::int64_t chosen) const {
    std::int64_t low = kNoKey + std::int64_t{1};
    std::int64_t high = std::numeric_limits<std::int32_t>::max();
    while (low < high) {
      const std::int64_t middle = high - (high - low) / 2;
      const std::int64_t found = count(static_cast<std::int32_t>(middle));
      if (found == chosen) return static_cast<std::int32_t>(middle);
      (found > chosen ? low : high) = found > chosen ? middle : middle - 1;
    }
    return static_cast<std::int32_t>(low);
  }

  /// Drops the last `surplus` of the keys that are equal to the last of the best.
  void drop_last(std::int64_t surplus, std::int32_t least, float* row) const {
    for (std::int64_t key = args_.keys - 1; surplus > 0; --key) {
      if (at(key) != least) continue;
      row[key] = kMinusInfinity;
      --surplus;
    }
  }

  const IndexerArguments& args_;
  AlignedVector<float> order_;  // bits of integers
};

}  // namespace

void choose_keys(const IndexerArguments& args, std::int64_t top_k, float* scores) {
  const std::int64_t rows = args.batch * args.queries;
#pragma omp parallel if (rows * args.keys >= kSerialElements)
  {
    RowChoice choice(args);
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t tokens = args.past + row % args.queries + 1;
      const std::int64_t visible = std::min(args.keys, tokens / args.rate);
      choice.run(row / args.queries, visible, top_k, scores + row * args.keys);
    }
  }
}

void choose_pool_tokens(const PoolArguments& args, const float* choice, float* out) {
  const std::int64_t rows = args.batch * args.queries;
#pragma omp parallel for schedule(static) if (rows * args.keys >= kSerialElements)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t visible = args.past + row % args.queries + 1;
    const std::int64_t own = row / args.queries * args.keys + visible - 1;
    const bool chooses = args.key_mask == nullptr || args.key_mask[own] != 0;
    const std::int64_t whole = chooses ? visible / args.pool_size : 0;
    const float* const of_pools = choice + row * args.pools;
    float* to = out + row * args.keys;
    for (std::int64_t pool = 0; pool < whole; ++pool) {
      to = std::fill_n(to, args.pool_size, of_pools[pool]);
    }
    to = std::fill_n(to, visible - whole * args.pool_size, 0.0F);
    std::fill_n(to, args.keys - visible, kMinusInfinity);
  }
}

}  // namespace headroom::measured
