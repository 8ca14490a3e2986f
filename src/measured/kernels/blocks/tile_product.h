// Products of a tile of stored weights with rows of activations: one kernel for every format.
#pragma once

#include <array>
#include <type_traits>

#include "byte_dot.h"
#include "format_kernels.h"
#include "int8_rows.h"

namespace headroom::measured::blocks {

/// Sums [tiles, rows of x], each over the kLanes rows of W in the tile.
template <std::size_t tiles, std::size_t rows>
using TileSums = std::array<std::array<Floats, rows>, tiles>;

/// Blocks of several tiles that are equally far apart.
template <std::size_t tiles>
struct TileRow {
  const std::byte* first = nullptr;
  std::size_t stride = 0;  ///< bytes from a tile to the next

  [[nodiscard]] BlockTile operator[](std::size_t number) const {
    return BlockTile(first + number * stride);
  }
};

/// Codes that fill their bytes, about a zero of 128.
template <class Format>
inline constexpr bool kIsWide = Format::kMaxCode > 127;

/// Subtracted from every code in a format's sums of products with int8 activations.
template <class Format>
inline constexpr float kSubtracted = kIsWide<Format> ? kCentre : 0;

template <class Format>
[[gnu::always_inline]] inline Ints add_codes(Ints sums, Words codes, Words x) {
  if constexpr (kIsWide<Format>) {
    static_assert(Format::kZero == 128);
    return add_centred_dot(sums, codes, x);
  } else {
    return add_low_dot(sums, codes, x);
  }
}

/// Scale and minimum of a group: value = scale·code − least. Formats whose minimum is a multiple of
/// their scale may have a scale near the largest float32; they name that multiple, kZero, and
/// scale·(code − kZero) is finite where the value is.
template <class Format>
class GroupScale {
 public:
  GroupScale(BlockTile tile, std::size_t g) : scale_(Format::scale(tile, g)) {
    if constexpr (!kCentred) least_ = Format::least(tile, g);
  }

  [[nodiscard]] Floats value(Floats code) const {
    if constexpr (kCentred) return (code - Format::kZero) * scale_;
    return code * scale_ - least_;
  }
  /// Σ value·x of `dots` = Σ (code − kSubtracted)·x, where x has this scale and sum.
  [[nodiscard]] Floats dot(Floats dots, float x_scale, float x_sum) const {
    if constexpr (kCentred) {
      constexpr float kRest = Format::kZero - kSubtracted<Format>;
      if constexpr (kRest == 0) return dots * x_scale * scale_;
      return (dots * x_scale - kRest * x_sum) * scale_;
    } else {
      return dots * (scale_ * x_scale) - least_ * x_sum;
    }
  }

 private:
  static constexpr bool kCentred = requires { Format::kZero; };
  Floats scale_;
  Floats least_ = {};
};

/// Adds the products of group `g` with int8 activations: Σ (scale·code − least)·x, where the sums
/// of codes are exact.
template <class Format, std::size_t tiles, std::size_t rows>
[[gnu::always_inline]] inline void add_group(TileRow<tiles> from, std::size_t g, const Int8Block* x,
                                             std::int64_t stride, TileSums<tiles, rows>& sums) {
  const std::size_t first = g * Format::kGroup;  // value of the block
  const Int8Block* const part = x + first / kInt8Block;
  std::array<std::array<Ints, rows>, tiles> dots = {};
  simd::unroll<Format::kGroup / 4>([&](auto i) {
    simd::unroll<tiles>([&](auto t) {
      const Words codes = Format::codes(from[t], g, i);
      simd::unroll<rows>([&](auto r) {
        const Int8Block& own = part[static_cast<std::int64_t>(r) * stride];
        std::uint32_t four;
        std::memcpy(&four, own.values.data() + first % kInt8Block + 4 * i, sizeof four);
        dots[t][r] = add_codes<Format>(dots[t][r], codes, Words{} + four);
      });
    });
  });
  simd::unroll<tiles>([&](auto t) {
    const GroupScale<Format> scale(from[t], g);
    simd::unroll<rows>([&](auto r) {
      const Int8Block& own = part[static_cast<std::int64_t>(r) * stride];
      const float sum = Format::kGroup == kInt8Block ? own.sum : own.half_sums[g % 2];
      sums[t][r] += scale.dot(__builtin_convertvector(dots[t][r], Floats), own.scale, sum);
    });
  });
}

/// Adds the products of group `g` of one tile with float32 activations.
template <class Format, std::size_t rows>
[[gnu::always_inline]] inline void add_tile_group(BlockTile tile, std::size_t g, const float* x,
                                                  std::int64_t stride,
                                                  std::array<Floats, rows>& sums) {
  const GroupScale<Format> scale(tile, g);
  const float* part = x + g * Format::kGroup;
  for (std::size_t i = 0; i < Format::kGroup / 4; ++i, part += 4) {
    const Words codes = Format::codes(tile, g, i);
    simd::unroll<4>([&](auto b) {
      const auto shift = static_cast<std::uint32_t>(8 * b);
      const Floats weights = scale.value(to_floats(codes >> shift & 0xffU));
      simd::unroll<rows>([&](auto r) {
        sums[r] +=
            weights * part[static_cast<std::int64_t>(r) * stride + static_cast<std::int64_t>(b)];
      });
    });
  }
}

template <class Format, std::size_t tiles, std::size_t rows>
[[gnu::always_inline]] inline void add_group(TileRow<tiles> from, std::size_t g, const float* x,
                                             std::int64_t stride, TileSums<tiles, rows>& sums) {
  simd::unroll<tiles>(
      [&](auto t) { add_tile_group<Format, rows>(from[t], g, x, stride, sums[t]); });
}

template <class Format>
inline constexpr std::size_t kTileBytes = block_bytes(Format::kFields) * kLanes;

template <class Format>
inline constexpr std::size_t kGroups = Format::kValues / Format::kGroup;

/// Prefetches group g's share of the tile so many bytes ahead: the fields of a block are read out
/// of order, which the processor's own prefetching follows badly. Twice what memory delivers during
/// its latency, 25 GB/s · 80 ns.
template <class Format>
[[gnu::always_inline]] inline void prefetch_share(const std::byte* tile, std::size_t g) {
  constexpr std::size_t kAhead = 4096;
  constexpr std::size_t kShare = kTileBytes<Format> / kGroups<Format>;
  const std::byte* const first = tile + kAhead + g * kShare;
  for (std::size_t byte = 0; byte < kShare; byte += kCacheLine) __builtin_prefetch(first + byte);
}

/// X per block: rows of int8 activations have a block for every 32 values.
template <class Format, class X>
inline constexpr std::size_t kStride =
    std::is_same_v<X, float> ? Format::kValues : Format::kValues / kInt8Block;

template <class Format, class X, std::size_t tiles, std::size_t rows>
void multiply_tiles(const TileOperands<X>& at) {
  TileSums<tiles, rows> sums = {};
  TileRow<tiles> from{at.tile,
                      static_cast<std::size_t>(at.next_tile * at.blocks) * kTileBytes<Format>};
  const X* x = at.x;
  for (std::int64_t block = 0; block < at.blocks; ++block) {
    for (std::size_t g = 0; g < kGroups<Format>; ++g) {
      simd::unroll<tiles>([&](auto t) { prefetch_share<Format>(from.first + t * from.stride, g); });
      add_group<Format, tiles, rows>(from, g, x, at.x_stride, sums);
    }
    from.first += kTileBytes<Format>;
    x += kStride<Format, X>;
  }
  simd::unroll<tiles>([&](auto t) {
    float* const y = at.y + static_cast<std::int64_t>(t) * at.next_tile * kLanes;
    simd::unroll<rows>([&](auto r) {
      simd::store_first(y + static_cast<std::int64_t>(r) * at.y_stride, sums[t][r], at.lanes);
    });
  });
}

template <class Format>
void decode_lane(const std::byte* block, std::size_t lane, float* to) {
  const BlockTile tile(block);
  for (std::size_t g = 0; g < Format::kValues / Format::kGroup; ++g) {
    const GroupScale<Format> scale(tile, g);
    for (std::size_t i = 0; i < Format::kGroup / 4; ++i) {
      const Words codes = Format::codes(tile, g, i);
      for (std::uint32_t b = 0; b < 4; ++b) {
        *to++ = scale.value(to_floats(codes >> (8 * b) & 0xffU))[lane];
      }
    }
  }
}

template <class Format, class X>
constexpr TileProducts<TileOperands<X>> tile_products() {
  return {{multiply_tiles<Format, X, 1, 8>, multiply_tiles<Format, X, 1, 4>,
           multiply_tiles<Format, X, 1, 1>},
          multiply_tiles<Format, X, static_cast<std::size_t>(kTilesAtOnce), 1>};
}

template <class Format>
constexpr FormatKernels kernels_of() {
  return {Format::kType,
          Format::kValues,
          Format::kFields,
          tile_products<Format, Int8Block>(),
          tile_products<Format, float>(),
          decode_lane<Format>};
}

}  // namespace headroom::measured::blocks
