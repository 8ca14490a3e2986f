#include "image_grids.h"

#include <algorithm>
#include <cmath>

#include "headroom/expr.h"
#include "python_set.h"

namespace headroom::detail {
namespace {

/// Scale that leaves an image as many whole patches as the limit has. Source: navit_resize,
/// transformers, models/kimi_k25.
double ratio_to_limit(const PixelLimits& limits, ImageSize size, const ImageSpec& image) {
  const auto patches = [&](std::int64_t side) {
    return static_cast<double>(std::max<std::int64_t>(side / image.patch_size, 1));
  };
  const auto patch = static_cast<double>(image.patch_size);
  const double most = static_cast<double>(limits.most) / (patch * patch);
  constexpr double kMostPatchesAcross = 512;
  const auto longer = static_cast<double>(std::max(size.height, size.width));
  return std::max(std::sqrt(patches(size.height) * patches(size.width) / most),
                  longer / (kMostPatchesAcross * patch));
}

}  // namespace

ImageGrid native_grid(const TowerSpec& tower, ImageSize size) {
  const ImageSpec& image = *tower.embedding.image;
  const auto most = static_cast<double>(image.image_size);
  const double longer = static_cast<double>(std::max(size.height, size.width));
  const double ratio =
      tower.pixel_limits ? ratio_to_limit(*tower.pixel_limits, size, image) : longer / most;
  const std::int64_t side = tower.projector.merged_side();
  const auto patches = [&](std::int64_t length) {
    if (ratio > 1) length = static_cast<std::int64_t>(static_cast<double>(length) / ratio);
    return ceil_div(std::max<std::int64_t>(length, 1), image.patch_size * side) * side;
  };
  return {patches(size.height), patches(size.width)};
}

ImageGrid rounded_grid(const TowerSpec& tower, ImageSize size) {
  const std::int64_t side = tower.projector.merged_side();
  const auto unit = static_cast<double>(tower.embedding.image->patch_size * side);
  const auto height = static_cast<double>(size.height);
  const auto width = static_cast<double>(size.width);
  double rows = std::max(std::nearbyint(height / unit), 1.0);
  double columns = std::max(std::nearbyint(width / unit), 1.0);
  if (const auto& limits = tower.pixel_limits) {
    const double pixels = rows * columns * unit * unit;
    const auto least = static_cast<double>(limits->least);
    const auto most = static_cast<double>(limits->most);
    if (pixels > most) {
      const double ratio = std::sqrt(height * width / most);
      rows = std::max(std::floor(height / ratio / unit), 1.0);
      columns = std::max(std::floor(width / ratio / unit), 1.0);
    } else if (pixels < least) {
      const double ratio = std::sqrt(least / (height * width));
      rows = std::ceil(height * ratio / unit);
      columns = std::ceil(width * ratio / unit);
    }
  }
  return {static_cast<std::int64_t>(rows) * side, static_cast<std::int64_t>(columns) * side};
}

ImageGrid grid_of_nearest_aspect(const TowerSpec& tower, ImageSize size) {
  const std::int64_t side = tower.projector.merged_side();
  const std::int64_t pixels = tower.embedding.image->patch_size * side;
  const std::int64_t most = tower.pixel_limits->most / pixels / pixels;
  const auto unit = static_cast<double>(pixels);
  const double aspect = static_cast<double>(size.height) / static_cast<double>(size.width);
  double rows = static_cast<double>(size.height) / unit;
  double columns = static_cast<double>(size.width) / unit;
  if (rows * columns > static_cast<double>(most)) {
    const double ratio = columns / rows;
    rows = std::sqrt(static_cast<double>(most) / ratio);
    columns = rows * ratio;
  }
  const auto down = [](double blocks) { return static_cast<std::int64_t>(std::floor(blocks)); };
  const auto up = [](double blocks) { return static_cast<std::int64_t>(std::ceil(blocks)); };
  const auto rounded = [](double blocks) {
    return std::max<std::int64_t>(static_cast<std::int64_t>(std::nearbyint(blocks)), 1);
  };
  ImageGrid best{rounded(rows), rounded(columns)};
  double least = HUGE_VAL;
  for (const auto& [row, column] : in_set_order({{down(rows), down(columns)},
                                                 {down(rows), up(columns)},
                                                 {up(rows), down(columns)},
                                                 {up(rows), up(columns)}})) {
    if (row < 1 || column < 1 || row * column > most) continue;
    const double difference =
        std::abs(static_cast<double>(row) / static_cast<double>(column) - aspect);
    if (difference >= least) continue;
    least = difference;
    best = {row, column};
  }
  return {best.rows * side, best.columns * side};
}

namespace {

Integer count_of(const ImageGrid& blocks) { return Integer{blocks.rows} * blocks.columns; }

/// Blocks along each side of an image, which completes them.
ImageGrid completed_blocks(std::int64_t unit, ImageSize size) {
  return {ceil_div(size.height, unit), ceil_div(size.width, unit)};
}

/// The blocks of the largest size of an image whose blocks are no more than `most`.
ImageGrid most_completed_blocks(std::int64_t unit, std::int64_t most, ImageSize size) {
  ImageGrid blocks{1, 1};
  std::int64_t low = 1;
  std::int64_t high = size.height;
  while (low <= high) {
    const std::int64_t height = low + (high - low) / 2;
    const auto width = static_cast<std::int64_t>(Integer{size.width} * height / size.height);
    const ImageGrid candidate = completed_blocks(unit, {height, std::max<std::int64_t>(width, 1)});
    const bool fits = count_of(candidate) <= most;
    if (fits) blocks = candidate;
    (fits ? low : high) = fits ? height + 1 : height - 1;
  }
  return blocks;
}

}  // namespace

ImageGrid completed_grid(const TowerSpec& tower, ImageSize size) {
  const std::int64_t side = tower.projector.merged_side();
  const std::int64_t unit = tower.embedding.image->patch_size * side;
  const PixelLimits& limits = *tower.pixel_limits;
  const std::int64_t least = limits.least / (unit * unit);
  const std::int64_t most = limits.most / (unit * unit);
  ImageGrid blocks = completed_blocks(unit, size);
  if (count_of(blocks) < least) {
    const double area = static_cast<double>(size.height) * static_cast<double>(size.width);
    const double scale = std::sqrt(static_cast<double>(limits.least) / area);
    const auto scaled = [&](std::int64_t length) {
      return static_cast<std::int64_t>(std::ceil(static_cast<double>(length) * scale));
    };
    blocks = completed_blocks(unit, {scaled(size.height), scaled(size.width)});
  }
  if (count_of(blocks) > most) blocks = most_completed_blocks(unit, most, size);
  return {blocks.rows * side, blocks.columns * side};
}

ImageGrid grid_of_most_patches(const ImageSpec& image, ImageSize size) {
  constexpr double kPrecision = 1e-5;
  const auto grid_at = [&](double scale) {
    const auto patches = [&](std::int64_t side) {
      const double scaled = static_cast<double>(side) * scale;
      const double whole = std::ceil(scaled / static_cast<double>(image.patch_size));
      return static_cast<std::int64_t>(std::max(whole, 1.0));
    };
    return ImageGrid{patches(size.height), patches(size.width)};
  };
  double low = kPrecision / 10;
  double high = 100;
  while (high - low >= kPrecision) {
    const double scale = (low + high) / 2;
    (grid_at(scale).patches() <= image.num_patches() ? low : high) = scale;
  }
  return grid_at(low);
}

}  // namespace headroom::detail
