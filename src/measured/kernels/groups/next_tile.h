// Several tiles of a grouped matrix that one product takes at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "../simd.h"

namespace headroom::measured::groups {

/// Distance from a tile to the next one of several.
struct NextTile {
  std::int64_t tiles = 0;
  std::int64_t code_bytes = 0;
  std::int64_t floats = 0;  ///< of scales, and of zero points

  [[nodiscard]] std::int64_t floats_of(std::size_t number) const {
    return static_cast<std::int64_t>(number) * floats;
  }
};

/// Writes the sums of tiles, [tiles, rows], to y.
template <class Tile, std::size_t tiles, std::size_t rows>
void store_sums(const Tile& at, const std::array<std::array<simd::Floats, rows>, tiles>& sums) {
  simd::unroll<tiles>([&](auto t) {
    float* const y = at.y + static_cast<std::int64_t>(t) * at.next.tiles * simd::kLanes;
    simd::unroll<rows>([&](auto r) {
      simd::store_first(y + static_cast<std::int64_t>(r) * at.y_stride, sums[t][r], at.lanes);
    });
  });
}

}  // namespace headroom::measured::groups
