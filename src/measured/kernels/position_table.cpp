#include "position_table.h"

#include <algorithm>
#include <cmath>

namespace headroom::measured {

namespace {

/// A source position and its weight.
struct Tap {
  std::int64_t position = 0;
  float weight = 0;
};
using Taps = std::vector<Tap>;

/// Cubic convolution (Keys 1981, doi 10.1109/TASSP.1981.1163711, eq. 4) at distance |x| < 2.
float cubic(float x, float a) {
  const float d = std::abs(x);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// Linear interpolation at distance |x| < 1.
float triangle(float x) { return std::max(0.0F, 1 - std::abs(x)); }

/// The four source positions around an output position, clamped to the table.
Taps cubic_taps(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  constexpr std::int64_t kTaps = 4;
  constexpr float kA = -0.75F;
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  const float place = scale * (static_cast<float>(output) + 0.5F) - 0.5F;
  const float below = std::floor(place);
  Taps taps;
  for (std::int64_t i = 0; i < kTaps; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(below) + i - 1;
    taps.push_back({std::clamp<std::int64_t>(at, 0, inputs - 1),
                    cubic(place - below - (static_cast<float>(i) - 1.0F), kA)});
  }
  return taps;
}

/// All positions under a filter of this radius, which widens with a table that shrinks; the weights
/// sum to 1.
template <class Filter>
Taps antialiased_taps(std::int64_t output, std::int64_t outputs, std::int64_t inputs, float radius,
                      const Filter& filter) {
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  const float width = std::max(scale, 1.0F);
  const float centre = scale * (static_cast<float>(output) + 0.5F);
  const auto first = static_cast<std::int64_t>(std::max(centre - radius * width + 0.5F, 0.0F));
  const float last = std::floor(centre + radius * width + 0.5F);
  const auto end = std::min(static_cast<std::int64_t>(last), inputs);
  Taps taps;
  float sum = 0;
  for (std::int64_t at = first; at < end; ++at) {
    taps.push_back({at, filter((static_cast<float>(at) - centre + 0.5F) / width)});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

/// The two positions around an output position whose first and last are the table's.
Taps corner_taps(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  const auto steps = static_cast<float>(std::max<std::int64_t>(outputs - 1, 1));
  const float place = static_cast<float>(output) * static_cast<float>(inputs - 1) / steps;
  const auto below = static_cast<std::int64_t>(place);
  const float rest = place - static_cast<float>(below);
  return {{below, 1 - rest}, {std::min(below + 1, inputs - 1), rest}};
}

/// The two positions around an output position on a table of cells, clamped to it.
Taps centre_taps(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  const float place = std::max(scale * (static_cast<float>(output) + 0.5F) - 0.5F, 0.0F);
  const auto below = static_cast<std::int64_t>(place);
  const float rest = place - static_cast<float>(below);
  return {{below, 1 - rest}, {std::min(below + 1, inputs - 1), rest}};
}

/// As `centre_taps`, with zeros around the table in place of its edges.
Taps centre_taps_in_zeros(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  const float place = scale * (static_cast<float>(output) + 0.5F) - 0.5F;
  const float below = std::floor(place);
  const auto first = static_cast<std::int64_t>(below);
  const float rest = place - below;
  Taps taps;
  if (first >= 0) taps.push_back({first, 1 - rest});
  if (first + 1 < inputs) taps.push_back({first + 1, rest});
  return taps;
}

/// `any_size` and `none` have no table to interpolate.
Taps taps_of(PositionInterpolation kind, std::int64_t output, std::int64_t outputs,
             std::int64_t inputs) {
  constexpr float kA = -0.5F;  // of torch's filter with antialiasing
  switch (kind) {
    case PositionInterpolation::linear:
      return corner_taps(output, outputs, inputs);
    case PositionInterpolation::linear_centres:
      return centre_taps(output, outputs, inputs);
    case PositionInterpolation::linear_swapped:
      return centre_taps_in_zeros(output, outputs, inputs);
    case PositionInterpolation::linear_antialiased:
      return antialiased_taps(output, outputs, inputs, 1, triangle);
    case PositionInterpolation::bicubic_antialiased:
      return antialiased_taps(output, outputs, inputs, 2, [](float x) { return cubic(x, kA); });
    case PositionInterpolation::none:
    case PositionInterpolation::bicubic:
    case PositionInterpolation::any_size:
      break;
  }
  return cubic_taps(output, outputs, inputs);
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
  if (kind == PositionInterpolation::linear_swapped) std::swap(rows, columns);
  if (rows == grid.rows && columns == grid.columns) {
    return {table, table + kept + rows * columns * grid.width};
  }
  std::vector<float> result(static_cast<std::size_t>(kept + rows * columns * grid.width));
  std::copy_n(table, kept, result.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    const Taps vertical = taps_of(kind, row, rows, grid.rows);
    for (std::int64_t column = 0; column < columns; ++column) {
      const Taps horizontal = taps_of(kind, column, columns, grid.columns);
      float* const to = result.data() + kept + (row * columns + column) * grid.width;
      for (const Tap& v : vertical) {
        for (const Tap& h : horizontal) {
          const float weight = v.weight * h.weight;
          const float* const x =
              table + kept + (v.position * grid.columns + h.position) * grid.width;
          for (std::int64_t i = 0; i < grid.width; ++i) to[i] += weight * x[i];
        }
      }
    }
  }
  return result;
}

}  // namespace headroom::measured
