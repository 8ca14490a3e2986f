#include "attention_split.h"

#include <algorithm>
#include <cmath>

#include "attention_block.h"
#include "headroom/expr.h"
#include "softmax.h"
#include "tile_multiply.h"

namespace headroom::measured {

namespace {

/// Fewest keys of a part: reading those of a head of 64 and its values, 128 KiB, takes 13 µs at
/// 10 GB/s, several times as long as another barrier.
constexpr std::int64_t kLeastKeys = 4 * kTileKeys;

std::int64_t lanes_of(const AttentionArguments& args) {
  return args.queries * (args.heads / args.kv_heads);
}

/// Sums, maximum and total of every lane of a part.
class Partial {
 public:
  Partial(float* memory, const AttentionArguments& args)
      : sums_(memory), width_(args.value_head_dim), lanes_(lanes_of(args)) {}

  static std::int64_t floats(const AttentionArguments& args) {
    return lanes_of(args) * (args.value_head_dim + 2);
  }
  [[nodiscard]] float* sums(std::int64_t lane) const { return sums_ + lane * width_; }
  [[nodiscard]] float& maximum(std::int64_t lane) const { return sums_[lanes_ * width_ + lane]; }
  [[nodiscard]] float& total(std::int64_t lane) const {
    return sums_[lanes_ * (width_ + 1) + lane];
  }

 private:
  float* sums_;
  std::int64_t width_;
  std::int64_t lanes_;
};

/// Attends to one of `parts` parts of the keys, a few lanes at a time.
void attend_part(const AttentionBlock& block, std::int64_t part, std::int64_t parts,
                 const Partial& partial) {
  const std::int64_t lanes = block.lanes.size();
  for (std::int64_t lane = 0; lane < lanes; lane += kFewLanes) {
    AttentionBlock few = block;
    few.lanes = {lane, std::min(lanes, lane + kFewLanes)};
    few.sums = partial.sums(lane);
    const std::int64_t begin = few.keys_begin();
    const Range own = partition(few.keys_end() - begin, parts, part, kTileKeys);
    FewRunning running = part == 0 ? begin_few(few) : FewRunning{};
    accumulate_few(few, {begin + own.begin, begin + own.end}, running);
    for (std::int64_t i = 0; i < few.lanes.size(); ++i) {
      partial.maximum(lane + i) = running[static_cast<std::size_t>(i)].maximum;
      partial.total(lane + i) = running[static_cast<std::size_t>(i)].total;
    }
  }
}

/// Adds up the parts of a head, one after another from `first`, and stores its outputs.
void merge(const AttentionBlock& block, float* first, std::int64_t parts) {
  const AttentionArguments& args = block.args;
  const std::int64_t width = args.value_head_dim;
  const auto partial = [&](std::int64_t part) {
    return Partial(first + part * Partial::floats(args), args);
  };
  for (std::int64_t lane = 0; lane < block.lanes.size(); ++lane) {
    float maximum = partial(0).maximum(lane);
    for (std::int64_t part = 1; part < parts; ++part) {
      maximum = std::max(maximum, partial(part).maximum(lane));
    }
    float* const out = block.out(lane);
    std::fill_n(out, width, 0.0F);
    float total = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const float factor = std::exp(partial(part).maximum(lane) - maximum);
      total += factor * partial(part).total(lane);
      add_scaled(factor, partial(part).sums(lane), width, out);
    }
    if (total == 0.0F) {
      store_mean(block, lane);
    } else {
      multiply_row(1 / total, width, out);
    }
  }
}

}  // namespace

std::int64_t key_parts(const AttentionArguments& args, int threads) {
  const std::int64_t heads = args.batch * args.kv_heads;
  if (lanes_of(args) > kBlockLanes || heads >= threads) return 1;
  return std::clamp<std::int64_t>(args.keys / kLeastKeys, 1,
                                  ceil_div(std::int64_t{threads}, heads));
}

// Parts of all heads: heads·⌈threads/heads⌉ < 2·threads, as there are fewer heads than threads.
std::int64_t split_scratch_floats(const AttentionArguments& args, int threads) {
  if (threads == 1 || args.keys < 2 * kLeastKeys) return 0;
  return std::int64_t{2} * threads * std::min(lanes_of(args), kBlockLanes) *
         (args.value_head_dim + 2);
}

void split_attention(const AttentionArguments& args, std::int64_t parts,
                     const SplitScratch& scratch) {
  const std::int64_t heads = args.batch * args.kv_heads;
  const auto block_of = [&](std::int64_t head, float* memory) {
    return AttentionBlock{args,
                          head / args.kv_heads,
                          head % args.kv_heads,
                          {0, lanes_of(args)},
                          memory,
                          memory + args.head_dim * kBlockLanes,
                          nullptr};
  };
  const auto first_of = [&](std::int64_t head) {
    return scratch.partials + head * parts * Partial::floats(args);
  };
#pragma omp parallel
  {
    float* const memory = scratch.of_threads + omp_get_thread_num() * scratch.of_thread_floats;
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t part = 0; part < parts; ++part) {
        const Partial partial(first_of(head) + part * Partial::floats(args), args);
        attend_part(block_of(head, memory), part, parts, partial);
      }
    }
#pragma omp for schedule(static)
    for (std::int64_t head = 0; head < heads; ++head) {
      merge(block_of(head, memory), first_of(head), parts);
    }
  }
}

}  // namespace headroom::measured
