// Position tables of images of another size than the table was trained for.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom::measured {

/// A table [prefix + rows·columns, width]: positions of `prefix` tokens, then of a grid of patches.
struct PositionGrid {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t prefix = 0;
  std::int64_t width = 0;
};

/// The table for a grid of `rows` × `columns` patches: `table` itself if it has that size, else its
/// bicubic interpolation with a = -0.75 and pixel centres at half-integers, as torch's
/// interpolate(mode="bicubic", align_corners=False) computes it. Rows of the prefix are kept.
[[nodiscard]] std::vector<float> interpolate_positions(const PositionGrid& grid, const float* table,
                                                       std::int64_t rows, std::int64_t columns);

}  // namespace headroom::measured
