// Register-blocked products of small matrices of any size, for eager and linear attention.
// Single-threaded; nothing is allocated.
#pragma once

#include "tile.h"

namespace headroom::measured {

/// Use of a product: overwrites the output, or adds to it.
enum class Output { overwrite, accumulate };

struct TileExtent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t steps = 0;
};

/// out [rows, columns] (+)= a [rows, steps] · b [steps, columns]. Reads no column of b after the
/// last.
void multiply(TileLeft a, TileRight b, TileOut out, const TileExtent& extent, Output output);

/// `multiply` for at most kTileColumns columns, with rows of b readable up to kTileColumns.
inline constexpr std::int64_t kTileColumns = 4 * simd::kLanes;
void multiply_padded(TileLeft a, TileRight b, TileOut out, const TileExtent& extent, Output output);

/// Σ a[i]·b[i]
float dot(const float* a, const float* b, std::int64_t count);

/// to[i] += factor · x[i]
void add_scaled(float factor, const float* x, std::int64_t count, float* to);

/// row *= factor
void multiply_row(float factor, std::int64_t count, float* row);

}  // namespace headroom::measured
