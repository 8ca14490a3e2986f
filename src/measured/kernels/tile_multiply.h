// Products of small matrices of any size, by register blocks: the pieces of eager and of linear
// attention. One thread's work; nothing is allocated.
#pragma once

#include "tile.h"

namespace headroom::measured {

/// Whether a product overwrites its output or is added to it.
enum class Sum { begin, go_on };

struct TileExtent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t steps = 0;
};

/// out [rows, columns] (+)= a [rows, steps] · b [steps, columns]. Reads no column of b behind the
/// last one.
void multiply(TileLeft a, TileRight b, TileOut out, const TileExtent& extent, Sum sum);

/// The same for at most kTileColumns columns, of a `b` whose rows are readable for kTileColumns.
inline constexpr std::int64_t kTileColumns = 4 * simd::kLanes;
void multiply_padded(TileLeft a, TileRight b, TileOut out, const TileExtent& extent, Sum sum);

/// Σ a[i]·b[i]
float dot(const float* a, const float* b, std::int64_t count);

/// to[i] += factor · x[i]
void add_scaled(float factor, const float* x, std::int64_t count, float* to);

/// row *= factor
void multiply_row(float factor, std::int64_t count, float* row);

}  // namespace headroom::measured
