#include <algorithm>

#include "attention.h"
#include "attention_block.h"
#include "attention_split.h"
#include "headroom/expr.h"
#include "parallel.h"

namespace headroom::measured {

namespace {

/// Returns whether scores need more than scale, bias and masks; attend_lanes has no more.
bool has_score_modifiers(const AttentionArguments& args) {
  return args.soft_cap > 0 || args.slopes != nullptr || args.sinks != nullptr;
}

void attend(const AttentionBlock& block) {
  if (block.lanes.size() > kFewLanes && !has_score_modifiers(block.args))
    return attend_lanes(block);
  for (std::int64_t lane = block.lanes.begin; lane < block.lanes.end; lane += kFewLanes) {
    AttentionBlock few = block;
    few.lanes = {lane, std::min(block.lanes.end, lane + kFewLanes)};
    attend_few(few);
  }
}

std::int64_t scratch_of_thread(const AttentionArguments& args) {
  return (args.head_dim + kTileKeys + args.value_head_dim) * kBlockLanes;
}

std::int64_t visible_pairs(const AttentionArguments& args) {
  const auto pairs_of = [&](std::int64_t batch) {
    std::int64_t pairs = 0;
    for (std::int64_t query = 0; query < args.queries; ++query) {
      pairs += visible_keys(args, batch, query) - first_key(args, batch, query);
    }
    return pairs;
  };
  if (args.spans == nullptr) return args.batch * args.heads * pairs_of(0);
  std::int64_t pairs = 0;
  for (std::int64_t batch = 0; batch < args.batch; ++batch) pairs += pairs_of(batch);
  return args.heads * pairs;
}

}  // namespace

void store_mean(const AttentionBlock& block, std::int64_t lane) {
  const AttentionArguments& args = block.args;
  float* out = block.out(lane);
  std::fill_n(out, args.value_head_dim, 0.0F);
  const float inverse_keys = 1.0F / static_cast<float>(args.keys);
  for (std::int64_t key = 0; key < args.keys; ++key) {
    const float* value = block.value(key);
    for (std::int64_t i = 0; i < args.value_head_dim; ++i) out[i] += value[i] * inverse_keys;
  }
}

std::int64_t fused_attention_scratch_floats(const AttentionArguments& args, int threads) {
  return threads * scratch_of_thread(args) + split_scratch_floats(args, threads);
}

std::int64_t fused_attention(const AttentionArguments& args, float* scratch) {
  const int threads = omp_get_max_threads();
  if (const std::int64_t parts = key_parts(args, threads); parts > 1) {
    const std::int64_t of_thread = scratch_of_thread(args);
    split_attention(args, parts, {scratch, of_thread, scratch + threads * of_thread});
    return 2 * (args.head_dim + args.value_head_dim) * visible_pairs(args);
  }
  const std::int64_t lanes = args.queries * (args.heads / args.kv_heads);
  const std::int64_t blocks = ceil_div(lanes, kBlockLanes);
  // Head by head, so that its keys and values stay in cache. The last queries see most keys;
  // starting with them leaves short blocks for the end.
#pragma omp parallel for collapse(2) schedule(dynamic)
  for (std::int64_t head = 0; head < args.batch * args.kv_heads; ++head) {
    for (std::int64_t block = blocks - 1; block >= 0; --block) {
      float* memory = scratch + omp_get_thread_num() * scratch_of_thread(args);
      float* weights = memory + args.head_dim * kBlockLanes;
      attend({args,
              head / args.kv_heads,
              head % args.kv_heads,
              {block * kBlockLanes, std::min(lanes, (block + 1) * kBlockLanes)},
              memory,
              weights,
              weights + kTileKeys * kBlockLanes});
    }
  }
  return 2 * (args.head_dim + args.value_head_dim) * visible_pairs(args);
}

}  // namespace headroom::measured
