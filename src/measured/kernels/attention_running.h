// The online softmax of lanes that stand side by side (arXiv 2205.14135, 3.1): `weights`
// [key, kBlockLanes] of a block.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "attention_block.h"
#include "vector_math.h"

namespace headroom::measured {

/// What is known of every lane's softmax after some keys.
template <std::size_t vectors>
struct RunningLanes {
  std::array<simd::Floats, vectors> most;
  std::array<simd::Floats, vectors> total = {};
  std::array<simd::Ints, vectors> first_key;  ///< the first one that a lane may see
  std::array<simd::Ints, vectors> last_key;   ///< the last one
};

template <std::size_t vectors>
RunningLanes<vectors> begin_lanes(const AttentionBlock& block) {
  RunningLanes<vectors> running;
  std::array<std::int32_t, vectors * simd::kLanes> first;
  std::array<std::int32_t, vectors * simd::kLanes> last;
  for (std::size_t i = 0; i < last.size(); ++i) {
    const std::int64_t lane = std::min(static_cast<std::int64_t>(i), block.lanes.size() - 1);
    first[i] = static_cast<std::int32_t>(first_key(block.args, block.query(lane)));
    last[i] = static_cast<std::int32_t>(visible_keys(block.args, block.query(lane)) - 1);
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    // Finite, so that it can be taken from a hidden score without making a NaN.
    running.most[v] = simd::broadcast(std::numeric_limits<float>::lowest());
    std::memcpy(&running.first_key[v], first.data() + v * simd::kLanes, sizeof(simd::Ints));
    std::memcpy(&running.last_key[v], last.data() + v * simd::kLanes, sizeof(simd::Ints));
  }
  return running;
}

/// Sets hidden scores to minus infinity.
template <std::size_t vectors>
void hide(const AttentionBlock& block, Range keys, const RunningLanes<vectors>& running) {
  const simd::Floats hidden = simd::broadcast(-std::numeric_limits<float>::infinity());
  const std::uint8_t* mask = block.key_mask();
  const std::int64_t seen_by_all = visible_keys(block.args, block.query(0));
  const std::int64_t begun_by_all = first_key(block.args, block.query(block.lanes.size() - 1));
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const bool padding = mask != nullptr && mask[key] == 0;
    if (!padding && key >= begun_by_all && key < seen_by_all) continue;
    float* row = block.weights + (key - keys.begin) * kBlockLanes;
    for (std::size_t v = 0; v < vectors; ++v, row += simd::kLanes) {
      const auto at = static_cast<std::int32_t>(padding ? INT32_MAX : key);
      const simd::Ints shown = (running.last_key[v] >= at) & (running.first_key[v] <= at);
      simd::store(row, shown ? simd::load(row) : hidden);
    }
  }
}

/// Scores become exponentials about the new maximum. Returns what earlier sums are to be
/// multiplied by.
template <std::size_t vectors>
std::array<simd::Floats, vectors> exponentiate(const AttentionBlock& block, Range keys,
                                               RunningLanes<vectors>& running) {
  std::array<simd::Floats, vectors> most = running.most;
  const auto at = [&](std::int64_t key, std::size_t v) {
    return block.weights + key * kBlockLanes + static_cast<std::int64_t>(v) * simd::kLanes;
  };
  for (std::int64_t key = 0; key < keys.size(); ++key) {
    simd::unroll<vectors>([&](auto v) { most[v] = simd::max(simd::load(at(key, v)), most[v]); });
  }
  std::array<simd::Floats, vectors> total = {};
  for (std::int64_t key = 0; key < keys.size(); ++key) {
    simd::unroll<vectors>([&](auto v) {
      const simd::Floats weight = simd::exp(simd::load(at(key, v)) - most[v]);
      simd::store(at(key, v), weight);
      total[v] += weight;
    });
  }
  std::array<simd::Floats, vectors> shrink;
  simd::unroll<vectors>([&](auto v) {
    shrink[v] = simd::exp(running.most[v] - most[v]);
    running.total[v] = running.total[v] * shrink[v] + total[v];
  });
  running.most = most;
  return shrink;
}

}  // namespace headroom::measured
