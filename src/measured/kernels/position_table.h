// Position tables of images of another size than the table was trained for.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::measured {

/// A table [prefix + rows·columns, width]: positions of `prefix` tokens, then of a grid of patches.
struct PositionGrid {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t prefix = 0;
  std::int64_t width = 0;
};

/// The table for a grid of `rows` × `columns` patches: `table` itself if it has that size, else an
/// interpolation. `linear`: bilinear, with the corners of both grids on each other. Otherwise pixel
/// centres are at half-integers, as in torch's interpolate(align_corners=False): `bicubic` has
/// a = -0.75; with antialiasing, which is bicubic with a = -0.5 or bilinear, the filter widens
/// where the grid shrinks (antialias=True). `linear_swapped` has zeros around the table
/// (torch's grid_sample), and is of `columns` × `rows` places. Rows of the prefix are kept.
[[nodiscard]] std::vector<float> interpolate_positions(const PositionGrid& grid, const float* table,
                                                       std::int64_t rows, std::int64_t columns,
                                                       PositionInterpolation kind);

/// The sum of a row of the first table and one of the second for every place: the tables, of `rows`
/// rows each, are those of the patches' columns and rows (Gemma 4).
[[nodiscard]] std::vector<float> sum_of_tables(const float* tables, std::int64_t rows,
                                               std::int64_t width, const ImageGrid& image);

}  // namespace headroom::measured
