// Images of a prompt as their preprocessor hands them to a tower.
#include <algorithm>
#include <cmath>

#include "headroom/expr.h"
#include "headroom/tiled_tower.h"
#include "headroom/workload.h"
#include "image_grids.h"

namespace headroom {
namespace {

/// Most tiles of an image, besides the whole. Source: max_patches of transformers' InternVL
/// processor.
constexpr std::int64_t kMostTiles = 12;
/// Most tiles of an image that fills a canvas, besides the whole. Source: max_patches of
/// transformers' Llama 4 processor.
constexpr std::int64_t kMostFittedTiles = 16;
/// Fewest and most tiles of a large image, besides the whole, and the side of a tile. Source:
/// min_tiles, max_tiles, tile_size and max_pixels_tolerance of transformers' LFM2-VL processor.
constexpr std::int64_t kFewestLargeTiles = 2;
constexpr std::int64_t kMostLargeTiles = 10;
constexpr std::int64_t kLargeTileSide = 512;
constexpr double kPixelTolerance = 2;
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

/// Numbers of tiles that an image may be cut into, and the pixels along a side of a tile.
struct TileRange {
  std::int64_t fewest = 1;
  std::int64_t most = kMostTiles;
  std::int64_t side = 0;
};

TileRange range_of(const TowerSpec& tower) {
  TileRange range;
  range.side = tower.embedding.image->image_size;
  if (tower.most_tiles > 0) range.most = tower.most_tiles;
  return range;
}

/// Tiles in the arrangement nearest the image's aspect ratio, in rows and columns; of equal ones
/// the larger, while the image has more than half of its pixels. Source: get_optimal_tiled_canvas,
/// transformers, models/got_ocr2.
ImageGrid arrangement_by_aspect(const TileRange& range, ImageSize size) {
  const double aspect = static_cast<double>(size.width) / static_cast<double>(size.height);
  const double area = static_cast<double>(size.width) * static_cast<double>(size.height);
  const double tile = static_cast<double>(range.side) * static_cast<double>(range.side);
  double least = HUGE_VAL;
  ImageGrid best{1, 1};
  for (std::int64_t tiles = range.fewest; tiles <= range.most; ++tiles) {
    for (std::int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const std::int64_t rows = tiles / columns;
      const double own = static_cast<double>(columns) / static_cast<double>(rows);
      const double difference = std::abs(aspect - own);
      const bool fills = area > 0.5 * tile * static_cast<double>(tiles);
      if (difference < least || (difference == least && fills)) best = {rows, columns};
      least = std::min(least, difference);
    }
  }
  return best;
}

std::int64_t tiles_by_aspect(const TileRange& range, ImageSize size) {
  return arrangement_by_aspect(range, size).patches();
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

/// Tiles of the canvas that an image fills with the least enlargement, else the least reduction; of
/// equal ones the smallest. Source: get_best_fit, transformers, models/llama4.
std::int64_t tiles_of_best_fit(const TowerSpec& tower, ImageSize size) {
  const auto side = static_cast<double>(tower.embedding.image->image_size);
  const std::int64_t most = tower.most_tiles > 0 ? tower.most_tiles : kMostFittedTiles;
  std::int64_t best = 1;
  double best_scale = 0;
  for (std::int64_t tiles = 1; tiles <= most; ++tiles) {
    for (std::int64_t rows = 1; rows <= tiles; ++rows) {
      if (tiles % rows != 0) continue;
      const std::int64_t columns = tiles / rows;
      const double across = side * static_cast<double>(columns);
      const double scale =
          std::min(across / static_cast<double>(size.width),
                   side * static_cast<double>(rows) / static_cast<double>(size.height));
      const bool enlarges = best_scale >= 1;
      const bool better =
          scale >= 1 ? !enlarges || scale < best_scale : !enlarges && scale > best_scale;
      if (!better) continue;
      best = tiles;
      best_scale = scale;
    }
  }
  return best;
}

/// Tiles of a large image and the whole, rounded; of another image the whole alone. Source:
/// resize_and_split and _is_image_too_large, transformers, models/lfm2_vl.
std::vector<ImageGrid> rounded_or_tiles(const TowerSpec& tower, ImageSize size) {
  const std::int64_t patch = tower.embedding.image->patch_size;
  const auto unit = static_cast<double>(patch * tower.projector.merged_side());
  const auto rounded = [&](std::int64_t side) {
    const double whole = std::nearbyint(static_cast<double>(side) / unit) * unit;
    return std::max(whole, static_cast<double>(patch));
  };
  const ImageGrid whole = detail::rounded_grid(tower, size);
  const auto most = static_cast<double>(tower.pixel_limits->most) * kPixelTolerance;
  if (rounded(size.height) * rounded(size.width) <= most) return {whole};
  const std::int64_t tiles =
      tiles_by_aspect({kFewestLargeTiles, kMostLargeTiles, kLargeTileSide}, size);
  const std::int64_t side = kLargeTileSide / patch;
  std::vector<ImageGrid> grids(static_cast<std::size_t>(tiles), ImageGrid{side, side});
  grids.push_back(whole);
  return grids;
}

/// Number of the size of the list that leaves an image the most pixels; of equal ones the smallest.
/// Source: select_best_resolution, transformers, image_processing_utils.py.
std::size_t best_size(const TileList& list, ImageSize size) {
  const auto height = static_cast<double>(size.height);
  const auto width = static_cast<double>(size.width);
  std::size_t best = 0;
  double most = 0;
  double least_waste = HUGE_VAL;
  for (std::size_t i = 0; i < list.heights.size(); ++i) {
    const auto rows = static_cast<double>(list.heights[i]);
    const auto columns = static_cast<double>(list.widths[i]);
    const double scale = std::min(columns / width, rows / height);
    const double kept =
        std::min(std::floor(width * scale) * std::floor(height * scale), width * height);
    const double waste = rows * columns - kept;
    if (kept < most || (kept == most && waste >= least_waste)) continue;
    best = i;
    most = kept;
    least_waste = waste;
  }
  return best;
}

/// Rows on one side of an image that only pad it, where its other side fills the tiles. Source:
/// unpad_image, transformers, models/llava_next.
std::int64_t padding_of(std::int64_t patches, std::int64_t across, std::int64_t side,
                        std::int64_t side_across) {
  constexpr double kDigits = 1e7;  // the reference code rounds to 7 digits first
  const double scale = static_cast<double>(across) / static_cast<double>(side_across);
  const double filled = std::nearbyint(static_cast<double>(side) * scale * kDigits) / kDigits;
  return (patches - static_cast<std::int64_t>(filled)) / 2;
}

/// All blocks of patches of so many rows and columns of tiles.
ImageTiling whole_tiling(const TowerSpec& tower, const ImageGrid& tiles) {
  const ImageSpec& image = *tower.embedding.image;
  const std::int64_t blocks = image.image_size / image.patch_size / tower.projector.pack()->side();
  ImageTiling tiling;
  tiling.tile_rows = tiles.rows;
  tiling.tile_columns = tiles.columns;
  tiling.kept_rows = tiles.rows * blocks;
  tiling.kept_columns = tiles.columns * blocks;
  tiling.out_rows = tiling.kept_rows;
  tiling.out_columns = tiling.kept_columns;
  return tiling;
}

/// As many tiles along the longer side as leave no more than `most_tiles` in all. Source:
/// HD_transform, image_processing_phi3_v.py of Phi-3-vision-128k-instruct.
ImageTiling tiling_of_most_columns(const TowerSpec& tower, ImageSize size) {
  const auto longer = static_cast<double>(std::max(size.height, size.width));
  const double ratio = longer / static_cast<double>(std::min(size.height, size.width));
  const auto across = [&](std::int64_t scale) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(scale) / ratio));
  };
  std::int64_t scale = 1;
  while (scale * across(scale) <= tower.most_tiles) ++scale;
  scale = std::max<std::int64_t>(scale - 1, 1);
  const std::int64_t side = tower.embedding.image->image_size;
  const auto shorter =
      static_cast<std::int64_t>(static_cast<double>(scale * side) / ratio);  // in pixels
  const std::int64_t tiles = std::max<std::int64_t>(ceil_div(shorter, side), 1);
  return whole_tiling(tower,
                      size.height > size.width ? ImageGrid{scale, tiles} : ImageGrid{tiles, scale});
}

/// The tiles that an image fills in its own size, or of `most_tiles` those nearest its aspect
/// ratio. The image is scaled until one side fits; blocks whose first patch is padding are dropped.
/// Source: dynamic_preprocess, transformers, models/phi4_multimodal.
ImageTiling tiling_of_own_size(const TowerSpec& tower, ImageSize size) {
  const ImageSpec& image = *tower.embedding.image;
  const std::int64_t side = image.image_size;
  ImageGrid tiles{ceil_div(size.height, side), ceil_div(size.width, side)};
  if (tiles.rows > tower.most_tiles / tiles.columns) {
    tiles = arrangement_by_aspect(range_of(tower), size);
  }
  ImageTiling tiling = whole_tiling(tower, tiles);
  const double down = static_cast<double>(tiles.rows * side) / static_cast<double>(size.height);
  const double across = static_cast<double>(tiles.columns * side) / static_cast<double>(size.width);
  const std::int64_t block = tower.projector.pack()->side();
  const auto kept = [&](std::int64_t count, std::int64_t length, double scale) {
    const std::int64_t all = count * side;
    const auto filled = static_cast<std::int64_t>(static_cast<double>(length) * scale);
    return ceil_div(all / image.patch_size - (all - filled) / image.patch_size, block);
  };
  if (across < down) {
    tiling.out_rows = kept(tiles.rows, size.height, across);
  } else {
    tiling.out_columns = kept(tiles.columns, size.width, down);
  }
  return tiling;
}

ImageTiling tiling_of_list(const TowerSpec& tower, ImageSize size) {
  const ImageSpec& image = *tower.embedding.image;
  const std::int64_t side = image.image_size / image.patch_size;
  const std::size_t best = best_size(tower.tiles, size);
  ImageTiling tiling;
  tiling.tile_rows = tower.tiles.heights[best] / image.image_size;
  tiling.tile_columns = tower.tiles.widths[best] / image.image_size;
  const std::int64_t rows = tiling.tile_rows * side;
  const std::int64_t columns = tiling.tile_columns * side;
  const double aspect = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (aspect > static_cast<double>(columns) / static_cast<double>(rows)) {
    tiling.first_row = padding_of(rows, columns, size.height, size.width);
  } else {
    tiling.first_column = padding_of(columns, rows, size.width, size.height);
  }
  tiling.kept_rows = rows - 2 * tiling.first_row;
  tiling.kept_columns = columns - 2 * tiling.first_column;
  tiling.out_rows = tiling.kept_rows;
  tiling.out_columns = tiling.kept_columns;
  if (tower.tiles.most_kept == 0) return tiling;
  // Source: pack_image_features, transformers, models/llava_onevision.
  constexpr double kTolerance = 1.1;
  const auto kept = static_cast<double>(tiling.kept_rows * tiling.kept_columns);
  const double ratio = std::sqrt(kept / static_cast<double>(tower.tiles.most_kept * side * side));
  if (ratio <= kTolerance) return tiling;
  const auto reduced = [&](std::int64_t count) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(count) / ratio));
  };
  tiling.out_rows = reduced(tiling.kept_rows);
  tiling.out_columns = reduced(tiling.kept_columns);
  return tiling;
}

}  // namespace

ImageTiling tiling_of_image(const TowerSpec& tower, ImageSize size) {
  if (reads_canvases(tower)) return canvas_of_image(tower, size);
  if (tower.rule == ImageRule::tiles_of_most_columns) return tiling_of_most_columns(tower, size);
  if (tower.rule == ImageRule::tiles_of_own_size) return tiling_of_own_size(tower, size);
  return tiling_of_list(tower, size);
}

ImageTiling stated_tiling(const TowerSpec& tower, ImageSize size) {
  if (tower.rule == ImageRule::tiles_of_list) return tiling_of_list(tower, size);
  const std::int64_t side = tower.embedding.image->image_size;
  return whole_tiling(tower, {size.height / side, size.width / side});
}

std::int64_t packed_tokens(const TowerSpec& tower, const ImageTiling& tiling) {
  if (reads_canvases(tower)) return 1;
  const ImageSpec& image = *tower.embedding.image;
  const std::int64_t of_tiles = tiling.out_rows * (tiling.out_columns + 1);
  const std::int64_t side = tower.projector.pack()->side();
  if (side == 1) return image.num_patches() + of_tiles;
  const std::int64_t blocks = image.image_size / image.patch_size / side;
  return of_tiles + 1 + blocks * (blocks + 1);
}

std::vector<ImageGrid> grids_of_image(const TowerSpec& tower, ImageSize size) {
  const ImageSpec& image = *tower.embedding.image;
  switch (tower.rule) {
    case ImageRule::resized:
      return {square_grid(image)};
    case ImageRule::native:
      return {detail::native_grid(tower, size)};
    case ImageRule::rounded:
      return {detail::rounded_grid(tower, size)};
    case ImageRule::completed:
      return {detail::completed_grid(tower, size)};
    case ImageRule::nearest_aspect:
      return {detail::grid_of_nearest_aspect(tower, size)};
    case ImageRule::most_patches:
      return {detail::grid_of_most_patches(image, size)};
    case ImageRule::tiles_by_aspect:
      return with_whole(image, tiles_by_aspect(range_of(tower), size));
    case ImageRule::rounded_or_tiles:
      return rounded_or_tiles(tower, size);
    case ImageRule::tiles_of_most_columns:
    case ImageRule::tiles_of_own_size:
    case ImageRule::tiles_of_list: {
      const ImageTiling tiling = tiling_of_image(tower, size);
      const std::int64_t tiles = 1 + tiling.tile_rows * tiling.tile_columns;
      return std::vector<ImageGrid>(static_cast<std::size_t>(tiles), square_grid(image));
    }
    case ImageRule::tiles_of_best_fit:
      if (reads_canvases(tower)) {
        return std::vector<ImageGrid>(static_cast<std::size_t>(tower.most_tiles),
                                      square_grid(image));
      }
      return with_whole(image, tiles_of_best_fit(tower, size));
    case ImageRule::tiles_of_longer_side:
      break;
  }
  return with_whole(image, tiles_of_longer_side(image, size));
}

}  // namespace headroom
