// Fused attention of few lanes, as in decode, which is bound by reading keys and values: each row
// is read in whole vectors and used for every lane.
#include <algorithm>
#include <array>

#include "attention_block.h"
#include "softmax.h"
#include "tile_multiply.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

/// Scores of one key with the first `lanes` lanes, stored kTileKeys apart.
template <std::size_t lanes>
void score_key(const std::array<const float*, kFewLanes>& queries, const float* key,
               std::int64_t head_dim, float* scores) {
  std::array<Floats, lanes> sums = {};
  std::int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    const Floats part = simd::load(key + i);
    simd::unroll<lanes>([&](auto lane) { sums[lane] += part * simd::load(queries[lane] + i); });
  }
  if (i < head_dim) {
    const Floats part = simd::load_first(key + i, head_dim - i);
    simd::unroll<lanes>(
        [&](auto lane) { sums[lane] += part * simd::load_first(queries[lane] + i, head_dim - i); });
  }
  simd::unroll<lanes>(
      [&](auto lane) { scores[lane * std::size_t{kTileKeys}] = simd::sum(sums[lane]); });
}

/// weights [lane, kTileKeys] = K·Qᵀ of one tile.
template <std::size_t lanes = kFewLanes>
void score(const AttentionBlock& block, Range keys) {
  if constexpr (lanes > 1) {
    if (block.lanes.size() < static_cast<std::int64_t>(lanes)) return score<lanes - 1>(block, keys);
  }
  std::array<const float*, kFewLanes> queries{};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    queries[lane] = block.query_row(static_cast<std::int64_t>(lane));
  }
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    score_key<lanes>(queries, block.key(key), block.args.head_dim,
                     block.weights + (key - keys.begin));
  }
}

/// The keys of a tile as one lane sees them.
SoftmaxRow piece_of(const AttentionBlock& block, std::int64_t lane, Range keys) {
  const std::int64_t visible = visible_keys(block.args, block.batch, block.query(lane));
  const std::int64_t first = first_key(block.args, block.batch, block.query(lane));
  const std::int64_t end = std::clamp<std::int64_t>(visible - keys.begin, 0, keys.size());
  const float* slopes = block.args.slopes;
  const float* bias = block.bias_row(lane);
  const std::uint8_t* mask = block.key_mask();
  return {.keys = keys.size(),
          .visible = end,
          .first = std::clamp<std::int64_t>(first - keys.begin, 0, end),
          .scale = block.args.scale,
          .soft_cap = block.args.soft_cap,
          .slope = slopes == nullptr ? 0.0F : slopes[block.head(lane)],
          .alibi_order = block.args.alibi_order,
          .index = keys.begin,
          .query = alibi_query(block.args, block.query(lane)),
          .bias = bias == nullptr ? nullptr : bias + keys.begin,
          .key_mask = mask == nullptr ? nullptr : mask + keys.begin};
}

}  // namespace

FewRunning begin_few(const AttentionBlock& block) {
  FewRunning running{};
  if (block.args.sinks == nullptr) return running;
  for (std::int64_t lane = 0; lane < block.lanes.size(); ++lane) {
    running[static_cast<std::size_t>(lane)].begin_with(block.args.sinks[block.head(lane)]);
  }
  return running;
}

void accumulate_few(const AttentionBlock& block, Range all, FewRunning& running) {
  const std::int64_t width = block.args.value_head_dim;
  const std::int64_t lanes = block.lanes.size();
  std::fill_n(block.sums, lanes * width, 0.0F);
  for (std::int64_t key = all.begin; key < all.end; key += kTileKeys) {
    const Range keys = {key, std::min(all.end, key + kTileKeys)};
    score(block, keys);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      float* weights = block.weights + lane * kTileKeys;
      RunningSoftmax& softmax = running[static_cast<std::size_t>(lane)];
      multiply_row(softmax.add(piece_of(block, lane, keys), weights), width,
                   block.sums + lane * width);
    }
    multiply({block.weights, kTileKeys, 1}, {block.value(key), block.args.v_stride},
             {block.sums, width}, {lanes, width, keys.size()}, Output::accumulate);
  }
}

void attend_few(const AttentionBlock& block) {
  const std::int64_t width = block.args.value_head_dim;
  const std::int64_t lanes = block.lanes.size();
  FewRunning running = begin_few(block);
  accumulate_few(block, {block.keys_begin(), block.keys_end()}, running);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const float total = running[static_cast<std::size_t>(lane)].total;
    if (total == 0.0F) {
      store_mean(block, lane);
      continue;
    }
    float* sums = block.sums + lane * width;
    multiply_row(1 / total, width, sums);
    std::copy_n(sums, width, block.out(lane));
  }
}

}  // namespace headroom::measured
