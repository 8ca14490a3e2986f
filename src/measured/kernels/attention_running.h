// Online softmax of a block's `weights` [key, kBlockLanes], vectorised over lanes
// (arXiv 2205.14135, 3.1).
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "attention_block.h"
#include "vector_math.h"

namespace headroom::measured {

/// State of every lane's softmax after some keys.
template <std::size_t vectors>
struct RunningLanes {
  std::array<simd::Floats, vectors> maximum;
  std::array<simd::Floats, vectors> total = {};
  std::array<simd::Ints, vectors> first_key;  ///< first visible key of the lane
  std::array<simd::Ints, vectors> last_key;   ///< last visible key of the lane
};

template <std::size_t vectors>
RunningLanes<vectors> begin_lanes(const AttentionBlock& block) {
  RunningLanes<vectors> running;
  std::array<std::int32_t, vectors * simd::kLanes> first;
  std::array<std::int32_t, vectors * simd::kLanes> last;
  for (std::size_t i = 0; i < last.size(); ++i) {
    const std::int64_t lane = std::min(static_cast<std::int64_t>(i), block.lanes.size() - 1);
    first[i] = static_cast<std::int32_t>(first_key(block.args, block.batch, block.query(lane)));
    last[i] =
        static_cast<std::int32_t>(visible_keys(block.args, block.batch, block.query(lane)) - 1);
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    // Finite, so that subtracting it from a masked score (-∞) gives no NaN.
    running.maximum[v] = simd::broadcast(std::numeric_limits<float>::lowest());
    std::memcpy(&running.first_key[v], first.data() + v * simd::kLanes, sizeof(simd::Ints));
    std::memcpy(&running.last_key[v], last.data() + v * simd::kLanes, sizeof(simd::Ints));
  }
  return running;
}

/// Sets masked scores to -∞.
template <std::size_t vectors>
void mask_scores(const AttentionBlock& block, Range keys, const RunningLanes<vectors>& running) {
  const simd::Floats masked_score = simd::broadcast(-std::numeric_limits<float>::infinity());
  const std::uint8_t* mask = block.key_mask();
  const std::int64_t visible_to_all = visible_keys(block.args, block.batch, block.query(0));
  const std::int64_t first_for_all =
      first_key(block.args, block.batch, block.query(block.lanes.size() - 1));
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const bool padding = mask != nullptr && mask[key] == 0;
    if (!padding && key >= first_for_all && key < visible_to_all) continue;
    float* row = block.weights + (key - keys.begin) * kBlockLanes;
    for (std::size_t v = 0; v < vectors; ++v, row += simd::kLanes) {
      const auto at = static_cast<std::int32_t>(padding ? INT32_MAX : key);
      const simd::Ints is_visible = (running.last_key[v] >= at) & (running.first_key[v] <= at);
      simd::store(row, is_visible ? simd::load(row) : masked_score);
    }
  }
}

/// Replaces scores by exp(score - maximum), with the maximum updated. Returns the factors that
/// rescale earlier sums.
template <std::size_t vectors>
std::array<simd::Floats, vectors> exponentiate(const AttentionBlock& block, Range keys,
                                               RunningLanes<vectors>& running) {
  std::array<simd::Floats, vectors> maximum = running.maximum;
  const auto at = [&](std::int64_t key, std::size_t v) {
    return block.weights + key * kBlockLanes + static_cast<std::int64_t>(v) * simd::kLanes;
  };
  for (std::int64_t key = 0; key < keys.size(); ++key) {
    simd::unroll<vectors>(
        [&](auto v) { maximum[v] = simd::max(simd::load(at(key, v)), maximum[v]); });
  }
  std::array<simd::Floats, vectors> total = {};
  for (std::int64_t key = 0; key < keys.size(); ++key) {
    simd::unroll<vectors>([&](auto v) {
      const simd::Floats weight = simd::exp(simd::load(at(key, v)) - maximum[v]);
      simd::store(at(key, v), weight);
      total[v] += weight;
    });
  }
  std::array<simd::Floats, vectors> rescale;
  simd::unroll<vectors>([&](auto v) {
    rescale[v] = simd::exp(running.maximum[v] - maximum[v]);
    running.total[v] = running.total[v] * rescale[v] + total[v];
  });
  running.maximum = maximum;
  return rescale;
}

}  // namespace headroom::measured
