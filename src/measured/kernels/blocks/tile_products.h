// Products of tiles of stored weights with rows of x, and the walk over a matrix with them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "../parallel.h"

namespace headroom::measured::blocks {

/// Numbers of rows of x that a product takes at once: each block is decoded once for all of them.
inline constexpr std::array<std::int64_t, 3> kRowsAtOnce{8, 4, 1};

/// Tiles of W that a product of one row takes at once. One row has nothing to do but to read, and
/// memory delivers several streams faster than one; the row is broadcast once for all of them.
inline constexpr std::int64_t kTilesAtOnce = 4;

/// Products of a tile by number of rows, as in kRowsAtOnce, and of kTilesAtOnce tiles with one row.
template <class Operands>
struct TileProducts {
  using Product = void (*)(const Operands& operands);

  std::array<Product, kRowsAtOnce.size()> of_rows;
  Product of_tiles;
};

/// Multiplies a tile with `rows` rows of x, as many at once as there are products for.
template <class Operands>
void multiply_rows(const TileProducts<Operands>& products, Operands at, std::int64_t rows) {
  for (std::size_t i = 0; i < kRowsAtOnce.size(); ++i) {
    for (; rows >= kRowsAtOnce[i]; rows -= kRowsAtOnce[i]) {
      products.of_rows[i](at);
      at.x += kRowsAtOnce[i] * at.x_stride;
      at.y += kRowsAtOnce[i] * at.y_stride;
    }
  }
}

/// Multiplies the tiles of `range` with `rows` rows of x: one row with several tiles at once, which
/// are equally far apart, more rows with one tile after another: it stays in the cache for all of
/// them. `whole` tiles of the matrix have kLanes rows of W. operands_of(first, next) returns the
/// operands of tile `first`, or of kTilesAtOnce from it on, each `next` behind the one before.
template <class Operands, class OperandsOf>
void multiply_range(const TileProducts<Operands>& products, Range range, std::int64_t whole,
                    std::int64_t rows, const OperandsOf& operands_of) {
  std::int64_t tile = range.begin;
  if (rows == 1) {
    const std::int64_t count = std::min(range.end, whole) - range.begin;
    const std::int64_t next = std::max<std::int64_t>(0, count) / kTilesAtOnce;
    for (; tile < range.begin + next; ++tile) products.of_tiles(operands_of(tile, next));
    tile += (kTilesAtOnce - 1) * next;
  }
  for (; tile < range.end; ++tile) multiply_rows(products, operands_of(tile, 0), rows);
}

}  // namespace headroom::measured::blocks
