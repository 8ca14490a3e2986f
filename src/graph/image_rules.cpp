// Images of a prompt as their preprocessor hands them to a tower.
#include <algorithm>
#include <cmath>

#include "headroom/expr.h"
#include "headroom/workload.h"

namespace headroom {
namespace {

/// Most tiles of an image, besides the whole. Source: max_patches of transformers' InternVL
/// processor.
constexpr std::int64_t kMostTiles = 12;
/// Tiles along the longer side of an image. Source: size and max_image_size of transformers'
/// Idefics3 and SmolVLM image processors.
constexpr std::int64_t kTilesOfLongerSide = 4;

ImageGrid square_grid(const ImageSpec& image) {
  const std::int64_t side = image.image_size / image.patch_size;
  return {side, side};
}

/// `tiles` and, if they are several, the whole image once more.
std::vector<ImageGrid> with_whole(const ImageSpec& image, std::int64_t tiles) {
  const std::int64_t count = tiles == 1 ? 1 : tiles + 1;
  return std::vector<ImageGrid>(static_cast<std::size_t>(count), square_grid(image));
}

/// Scales an image down until its longer side fits, and completes its blocks of patches. Source:
/// get_resize_output_image_size, transformers, models/pixtral.
ImageGrid native_grid(const TowerSpec& tower, ImageSize size) {
  const ImageSpec& image = *tower.embedding.image;
  const auto most = static_cast<double>(image.image_size);
  const double ratio = static_cast<double>(std::max(size.height, size.width)) / most;
  const std::int64_t side = tower.projector.merged_side();
  const auto patches = [&](std::int64_t length) {
    if (ratio > 1) length = static_cast<std::int64_t>(static_cast<double>(length) / ratio);
    return ceil_div(std::max<std::int64_t>(length, 1), image.patch_size * side) * side;
  };
  return {patches(size.height), patches(size.width)};
}

/// Rounds the sides of an image to whole blocks of patches. Source: smart_resize, transformers,
/// models/qwen2_vl.
ImageGrid rounded_grid(const TowerSpec& tower, ImageSize size) {
  const std::int64_t side = tower.projector.merged_side();
  const std::int64_t unit = tower.embedding.image->patch_size * side;
  const auto patches = [&](std::int64_t length) {
    const double blocks = std::nearbyint(static_cast<double>(length) / static_cast<double>(unit));
    return std::max<std::int64_t>(static_cast<std::int64_t>(blocks), 1) * side;
  };
  return {patches(size.height), patches(size.width)};
}

/// Tiles in the arrangement nearest the image's aspect ratio; of equal ones the larger, while the
/// image has more than half of its pixels. Source: get_optimal_tiled_canvas, transformers,
/// models/got_ocr2.
std::int64_t tiles_by_aspect(const ImageSpec& image, ImageSize size) {
  const double aspect = static_cast<double>(size.width) / static_cast<double>(size.height);
  const double area = static_cast<double>(size.width) * static_cast<double>(size.height);
  const double tile = static_cast<double>(image.image_size) * static_cast<double>(image.image_size);
  double least = HUGE_VAL;
  std::int64_t best = 1;
  for (std::int64_t tiles = 1; tiles <= kMostTiles; ++tiles) {
    for (std::int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const std::int64_t rows = tiles / columns;
      const double own = static_cast<double>(columns) / static_cast<double>(rows);
      const double difference = std::abs(aspect - own);
      const bool fills = area > 0.5 * tile * static_cast<double>(tiles);
      if (difference < least || (difference == least && fills)) best = tiles;
      least = std::min(least, difference);
    }
  }
  return best;
}

/// Tiles of an image whose longer side is scaled to 4 tiles, and whose other side is completed.
/// Source: resize and resize_for_vision_encoder, transformers, models/idefics3.
std::int64_t tiles_of_longer_side(const ImageSpec& image, ImageSize size) {
  const std::int64_t longer = std::max(size.height, size.width);
  const double shorter = static_cast<double>(std::min(size.height, size.width));
  const std::int64_t scaled_longer = kTilesOfLongerSide * image.image_size;
  const auto scaled = static_cast<std::int64_t>(shorter / static_cast<double>(longer) *
                                                static_cast<double>(scaled_longer));
  const std::int64_t even = std::max<std::int64_t>(scaled + scaled % 2, 1);
  return kTilesOfLongerSide * ceil_div(even, image.image_size);
}

}  // namespace

std::vector<ImageGrid> grids_of_image(const TowerSpec& tower, ImageSize size) {
  const ImageSpec& image = *tower.embedding.image;
  switch (tower.rule) {
    case ImageRule::resized:
      return {square_grid(image)};
    case ImageRule::native:
      return {native_grid(tower, size)};
    case ImageRule::rounded:
      return {rounded_grid(tower, size)};
    case ImageRule::tiles_by_aspect:
      return with_whole(image, tiles_by_aspect(image, size));
    case ImageRule::tiles_of_longer_side:
      break;
  }
  return with_whole(image, tiles_of_longer_side(image, size));
}

}  // namespace headroom
