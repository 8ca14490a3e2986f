// Scales and zero points of a tile's rows, decoded once per tile for all its columns.
#pragma once

#include <cstdint>
#include <vector>

#include "../aligned.h"
#include "../simd.h"
#include "grouped_weights.h"

namespace headroom::measured::groups {

/// Scales of a matrix in the bytes of its file: in tiles of kLanes rows, or one for several rows.
class TileScales {
 public:
  /// Of `weights`, in tiles; the rows that fill up the last one have scales of 0.
  explicit TileScales(const checkpoint::GroupedWeights& weights);

  /// Writes the scales of a tile to `to`, [groups, kLanes].
  void decode(std::int64_t tile, float* to) const;
  /// Likewise its zero points.
  void decode_zeros(std::int64_t tile, float* to) const;

  [[nodiscard]] bool has_scales() const noexcept {
    return grid_.kind != checkpoint::ScaleKind::none;
  }
  [[nodiscard]] bool has_zeros() const noexcept { return !zeros_.empty(); }
  [[nodiscard]] std::int64_t groups() const noexcept { return groups_; }
  [[nodiscard]] std::int64_t held_bytes() const noexcept;

 private:
  void lay_out_zeros(const checkpoint::GroupedWeights& weights);
  void decode_shared(std::int64_t tile, float* to) const;
  void decode_nested(std::int64_t tile, float* to) const;

  checkpoint::ScaleGrid grid_;  ///< without its values
  std::int64_t groups_ = 0;
  std::int64_t rows_ = 0;
  PooledVector<std::byte> values_;    ///< [tiles, groups, kLanes], or [blocks of rows, groups]
  PooledVector<std::uint8_t> zeros_;  ///< [tiles, groups, kLanes], nibbles in pairs
  checkpoint::CodeKind kind_ = checkpoint::CodeKind::nibble;
};

}  // namespace headroom::measured::groups
