#include "headroom/tiled_tower.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"

namespace headroom {
namespace {

/// Scale that leaves an image within a canvas. Source: get_optimal_tiled_canvas, transformers,
/// models/mllama.
double scale_to(const TileList& tiles, std::size_t index, ImageSize size) {
  const double down = static_cast<double>(tiles.heights[index]) / static_cast<double>(size.height);
  const double across = static_cast<double>(tiles.widths[index]) / static_cast<double>(size.width);
  return across > down ? down : across;
}

/// Returns whether canvas `index` is better than `best`.
bool is_better(const TileList& tiles, ImageSize size, std::size_t index, std::size_t best) {
  const double scale = scale_to(tiles, index, size);
  const double other = scale_to(tiles, best, size);
  if (scale == other) {
    return tiles.heights[index] * tiles.widths[index] < tiles.heights[best] * tiles.widths[best];
  }
  const bool enlarges = other >= 1;
  return scale >= 1 ? !enlarges || scale < other : !enlarges && scale > other;
}

}  // namespace

bool reads_canvases(const TowerSpec& tower) {
  return tower.rule == ImageRule::tiles_of_best_fit && !tower.tiles.heights.empty();
}

bool attends_to_images(const ModelSpec& spec) {
  return spec.kind == ModelKind::decoder && spec.decoder->cross_attention.has_value();
}

bool has_placeholder_rows(const ModelSpec& spec) {
  const auto is_behind = [&](std::int64_t token) { return token >= spec.embedding.vocab_size; };
  return attends_to_images(spec) && spec.tower && std::ranges::any_of(spec.tower_tokens, is_behind);
}

std::int64_t rows_of_tile(const TowerSpec& tower) { return tower.embedding.image->num_tokens(); }

std::int64_t padded_rows_of_tile(const TowerSpec& tower) {
  constexpr std::int64_t kMultiple = 8;  // MllamaVisionModel.forward
  return (rows_of_tile(tower) + kMultiple - 1) / kMultiple * kMultiple;
}

std::int64_t keys_of_image(const TowerSpec& tower) {
  return tower.most_tiles * rows_of_tile(tower);
}

std::int64_t local_layers(const TowerSpec& tower) {
  std::int64_t layer = 0;
  while (layer < tower.stack.num_layers && tower.stack.variant(layer) == 0) ++layer;
  return layer;
}

ImageTiling canvas_of_image(const TowerSpec& tower, ImageSize size) {
  const TileList& tiles = tower.tiles;
  std::size_t best = 0;
  for (std::size_t i = 1; i < tiles.heights.size(); ++i) {
    if (is_better(tiles, size, i, best)) best = i;
  }
  const std::int64_t side = tower.embedding.image->image_size;
  ImageTiling canvas;
  canvas.tile_rows = tiles.heights[best] / side;
  canvas.tile_columns = tiles.widths[best] / side;
  return canvas;
}

std::int64_t number_of_canvas(const TowerSpec& tower, const ImageTiling& canvas) {
  const std::int64_t side = tower.embedding.image->image_size;
  for (std::size_t i = 0; i < tower.tiles.heights.size(); ++i) {
    const bool matches = tower.tiles.heights[i] == canvas.tile_rows * side &&
                         tower.tiles.widths[i] == canvas.tile_columns * side;
    if (matches) return static_cast<std::int64_t>(i) + 1;
  }
  throw Error(ErrorCode::invalid_input, fmt::format("supported_aspect_ratios lack {} × {} tiles",
                                                    canvas.tile_rows, canvas.tile_columns));
}

}  // namespace headroom
