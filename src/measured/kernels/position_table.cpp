#include "position_table.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::measured {

namespace {

constexpr std::size_t kTaps = 4;

/// The four source positions around an output position, clamped to the table, and their weights.
struct Taps {
  std::array<std::int64_t, kTaps> position;
  std::array<float, kTaps> weight;
};

/// Cubic convolution (Keys 1981, doi 10.1109/TASSP.1981.1163711, eq. 4) at distance |x| < 2.
float cubic(float x) {
  constexpr float kA = -0.75F;
  const float d = std::abs(x);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
}

Taps taps_of(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  const float place = scale * (static_cast<float>(output) + 0.5F) - 0.5F;
  const float below = std::floor(place);
  Taps taps{};
  for (std::size_t i = 0; i < kTaps; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(below) + static_cast<std::int64_t>(i) - 1;
    taps.position[i] = std::clamp<std::int64_t>(at, 0, inputs - 1);
    taps.weight[i] = cubic(place - below - (static_cast<float>(i) - 1.0F));
  }
  return taps;
}

/// The two positions around an output position whose first and last are the table's; the other taps
/// have no weight.
Taps corner_taps_of(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  const auto steps = static_cast<float>(std::max<std::int64_t>(outputs - 1, 1));
  const float place = static_cast<float>(output) * static_cast<float>(inputs - 1) / steps;
  const auto below = static_cast<std::int64_t>(place);
  const float rest = place - static_cast<float>(below);
  Taps taps{};
  taps.position = {below, std::min(below + 1, inputs - 1), 0, 0};
  taps.weight = {1 - rest, rest, 0, 0};
  return taps;
}

}  // namespace

std::vector<float> sum_of_tables(const float* tables, std::int64_t rows, std::int64_t width,
                                 const ImageGrid& image) {
  std::vector<float> result;
  for (std::int64_t patch = 0; patch < image.patches(); ++patch) {
    const float* const of_column = tables + patch % image.columns * width;
    const float* const of_row = tables + (rows + patch / image.columns) * width;
    for (std::int64_t i = 0; i < width; ++i) result.push_back(of_column[i] + of_row[i]);
  }
  return result;
}

std::vector<float> interpolate_positions(const PositionGrid& grid, const float* table,
                                         std::int64_t rows, std::int64_t columns,
                                         PositionInterpolation kind) {
  const std::int64_t kept = grid.prefix * grid.width;
  if (rows == grid.rows && columns == grid.columns) {
    return {table, table + kept + rows * columns * grid.width};
  }
  const auto taps = kind == PositionInterpolation::linear ? corner_taps_of : taps_of;
  std::vector<float> result(static_cast<std::size_t>(kept + rows * columns * grid.width));
  std::copy_n(table, kept, result.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    const Taps vertical = taps(row, rows, grid.rows);
    for (std::int64_t column = 0; column < columns; ++column) {
      const Taps horizontal = taps(column, columns, grid.columns);
      float* const to = result.data() + kept + (row * columns + column) * grid.width;
      for (std::size_t v = 0; v < kTaps; ++v) {
        for (std::size_t h = 0; h < kTaps; ++h) {
          const std::int64_t from = vertical.position[v] * grid.columns + horizontal.position[h];
          const float weight = vertical.weight[v] * horizontal.weight[h];
          const float* const x = table + kept + from * grid.width;
          for (std::int64_t i = 0; i < grid.width; ++i) to[i] += weight * x[i];
        }
      }
    }
  }
  return result;
}

}  // namespace headroom::measured
