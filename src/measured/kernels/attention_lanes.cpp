// Fused attention, vectorised over lanes. All tiles are transposed, [.., kBlockLanes], so that
// maxima and sums over keys are plain vector operations.
#include <algorithm>
#include <array>
#include <bit>

#include "attention_block.h"
#include "attention_running.h"
#include "tile.h"
#include "transpose.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

constexpr std::size_t kMaxVectors = kBlockLanes / kLanes;

/// Rows of a register block: as many as keep its sums in registers.
constexpr std::size_t register_rows(std::size_t vectors) {
  const std::size_t registers = simd::kVectorBytes == 64 ? 24 : 8;
  return std::bit_floor(std::min<std::size_t>(8, registers / vectors));
}

void load_queries(const AttentionBlock& block) {
  const AttentionArguments& args = block.args;
  std::array<const float*, kBlockLanes> rows;
  for (std::int64_t lane = 0; lane < block.lanes.size(); ++lane) {
    rows[static_cast<std::size_t>(lane)] = block.query_row(lane);
  }
  transpose<RowEnd::padded>(
      block.lanes.size(), args.head_dim,
      [&](std::int64_t lane) { return rows[static_cast<std::size_t>(lane)]; },
      [&](std::int64_t i) { return block.queries + i * kBlockLanes; });
  for (std::int64_t i = 0; i < args.head_dim * kBlockLanes; ++i) block.queries[i] *= args.scale;
}

/// weights = bias of the tile, transposed.
void load_bias(const AttentionBlock& block, Range keys) {
  transpose<RowEnd::padded>(
      block.lanes.size(), keys.size(),
      [&](std::int64_t lane) { return block.bias_row(lane) + keys.begin; },
      [&](std::int64_t key) { return block.weights + key * kBlockLanes; });
}

/// Calls body(first row, std::integral_constant of the number of rows) until `rows` are done.
template <std::size_t max_rows, class Body>
void for_register_rows(std::int64_t rows, const Body& body) {
  constexpr auto kStep = static_cast<std::int64_t>(max_rows);
  std::int64_t row = 0;
  for (; row + kStep <= rows; row += kStep)
    body(row, std::integral_constant<std::size_t, max_rows>{});
  for (; row < rows; ++row) body(row, std::integral_constant<std::size_t, 1>{});
}

/// weights [key, lane] = (bias +) K·Qᵀ of one tile.
template <std::size_t vectors>
void score(const AttentionBlock& block, Range keys) {
  const bool biased = block.args.bias != nullptr;
  if (biased) load_bias(block, keys);
  for_register_rows<register_rows(vectors)>(keys.size(), [&](std::int64_t first, auto rows) {
    float* to = block.weights + first * kBlockLanes;
    const auto at = [to](std::size_t r, std::size_t v) {
      return to + static_cast<std::int64_t>(r) * kBlockLanes +
             static_cast<std::int64_t>(v) * kLanes;
    };
    tile_product<rows, vectors>(
        {block.key(keys.begin + first), block.args.k_stride, 1}, {block.queries, kBlockLanes},
        block.args.head_dim,
        [&](std::size_t r, std::size_t v) { return biased ? simd::load(at(r, v)) : Floats{}; },
        [&](std::size_t r, std::size_t v, Floats sum) { simd::store(at(r, v), sum); });
  });
}

/// sums [value, lane] = sums · rescale + Vᵀ·weights of one tile.
template <std::size_t vectors>
void accumulate(const AttentionBlock& block, Range keys,
                const std::array<Floats, vectors>& rescale) {
  for_register_rows<register_rows(vectors)>(
      block.args.value_head_dim, [&](std::int64_t first, auto rows) {
        float* to = block.sums + first * kBlockLanes;
        const auto at = [to](std::size_t r, std::size_t v) {
          return to + static_cast<std::int64_t>(r) * kBlockLanes +
                 static_cast<std::int64_t>(v) * kLanes;
        };
        tile_product<rows, vectors>(
            {block.value(keys.begin) + first, 1, block.args.v_stride}, {block.weights, kBlockLanes},
            keys.size(),
            [&](std::size_t r, std::size_t v) { return simd::load(at(r, v)) * rescale[v]; },
            [&](std::size_t r, std::size_t v, Floats sum) { simd::store(at(r, v), sum); });
      });
}

template <std::size_t vectors>
void store_lanes(const AttentionBlock& block, const RunningLanes<vectors>& running) {
  for (std::size_t v = 0; v < vectors; ++v) {
    const Floats inverse = 1.0F / running.total[v];
    for (std::int64_t i = 0; i < block.args.value_head_dim; ++i) {
      float* at = block.sums + i * kBlockLanes + static_cast<std::int64_t>(v) * kLanes;
      simd::store(at, simd::load(at) * inverse);
    }
  }
  std::array<float*, kBlockLanes> rows;
  for (std::int64_t lane = 0; lane < block.lanes.size(); ++lane) {
    rows[static_cast<std::size_t>(lane)] = block.out(lane);
  }
  transpose<RowEnd::exact>(
      block.args.value_head_dim, block.lanes.size(),
      [&](std::int64_t i) { return block.sums + i * kBlockLanes; },
      [&](std::int64_t lane) { return rows[static_cast<std::size_t>(lane)]; });
  if (block.args.key_mask == nullptr) return;
  for (std::int64_t lane = 0; lane < block.lanes.size(); ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    if (running.total[at / kLanes][at % kLanes] == 0.0F) store_mean(block, lane);
  }
}

template <std::size_t vectors>
void attend(const AttentionBlock& block) {
  load_queries(block);
  std::fill_n(block.sums, block.args.value_head_dim * kBlockLanes, 0.0F);
  RunningLanes<vectors> running = begin_lanes<vectors>(block);
  const std::int64_t end = block.keys_end();
  for (std::int64_t key = block.keys_begin(); key < end; key += kTileKeys) {
    const Range keys = {key, std::min(end, key + kTileKeys)};
    score<vectors>(block, keys);
    mask_scores<vectors>(block, keys, running);
    accumulate<vectors>(block, keys, exponentiate<vectors>(block, keys, running));
  }
  store_lanes<vectors>(block, running);
}

/// Calls `attend` with as few vectors as the lanes need.
template <std::size_t vectors = kMaxVectors>
void dispatch(const AttentionBlock& block) {
  if constexpr (vectors > 1) {
    constexpr auto kFewer = static_cast<std::int64_t>(vectors - 1) * kLanes;
    if (block.lanes.size() <= kFewer) return dispatch<vectors - 1>(block);
  }
  attend<vectors>(block);
}

}  // namespace

void attend_lanes(const AttentionBlock& block) { dispatch(block); }

}  // namespace headroom::measured
