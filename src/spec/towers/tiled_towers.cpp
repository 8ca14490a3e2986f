// Towers of LLaVA-NeXT and LLaVA-OneVision (arXiv 2408.03326), which cut an image into the tiles of
// the best of image_grid_pinpoints, drop the padding and end each row of patches with a trained
// vector.
#include <string>
#include <utility>

#include "image_towers.h"
#include "number_text.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// LlavaNextConfig's sizes, in the order of which the first of equally good ones wins.
TileList next_tiles() { return {{336, 672, 672, 1008, 336}, {672, 336, 672, 336, 1008}, 0}; }

/// LlavaOnevisionConfig's sizes: 1 to 6 tiles of 384 pixels a side.
TileList onevision_tiles(std::int64_t most_kept) {
  constexpr std::int64_t kSide = 384;
  TileList tiles;
  tiles.most_kept = most_kept;
  for (std::int64_t rows = 1; rows <= 6; ++rows) {
    for (std::int64_t columns = 1; columns <= 6; ++columns) {
      tiles.heights.push_back(rows * kSide);
      tiles.widths.push_back(columns * kSide);
    }
  }
  return tiles;
}

/// Sizes of tiled images; `absent`: those of the class.
TileList read_tile_list(ConfigReader& config, const TowerSpec& tower, TileList absent) {
  if (!config.has("image_grid_pinpoints")) return absent;
  const std::int64_t side = tower.embedding.image->image_size;
  TileList tiles;
  tiles.most_kept = absent.most_kept;
  constexpr std::int64_t kMostAcross = 64;  // published lists have up to 6
  for (const auto& [height, width] : config.pairs("image_grid_pinpoints")) {
    if (height / side > kMostAcross || width / side > kMostAcross) {
      config.fail("image_grid_pinpoints", "has a size of more than 64 tiles a side",
                  "use smaller sizes");
    }
    if (height < side || width < side) {
      config.fail("image_grid_pinpoints", "has a size smaller than a tile",
                  "use multiples of vision_config.image_size");
    }
    tiles.heights.push_back(height);
    tiles.widths.push_back(width);
  }
  return tiles;
}

/// The 9 in vision_aspect_ratio "anyres_max_9": the tiles whose patches a larger image keeps.
std::int64_t read_most_kept(ConfigReader& config) {
  constexpr std::string_view kBeginning = "anyres_max_";
  const std::string word = config.text_or({"vision_aspect_ratio"}, "anyres_max_9");
  if (word.starts_with(kBeginning)) {
    const auto tiles = integer_of(std::string_view(word).substr(kBeginning.size()));
    if (tiles && *tiles > 0) return *tiles;
  }
  config.fail("vision_aspect_ratio", "\"" + word + "\" is not supported",
              "use anyres_max_N with a number of tiles");
}

void read_tiled_tower(ConfigReader& config, ModelSpec& spec, const TiledDefaults& absent,
                      TileList tiles) {
  TowerSpec tower = read_clip_or_siglip(config, spec);
  read_features(config, spec, tower, absent);
  tower.projector.steps.emplace_back(PackStep{});
  if (tower.projector.rows == FeatureRows::all &&
      tower.embedding.image->prefix != PrefixTokens::none) {
    spec.not_run = "its projector packs class tokens between patches";
  }
  tower.rule = ImageRule::tiles_of_list;
  tower.tiles = read_tile_list(config, tower, std::move(tiles));
  config.ignore({"image_seq_length", "use_image_newline_parameter", "ignore_index", "vocab_size"});
  spec.tower = std::move(tower);
}

}  // namespace

void read_llava_next_tower(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"vision_aspect_ratio"});
  read_tiled_tower(config, spec, {-2, FeatureRows::patches}, next_tiles());
}

void read_llava_next_video_tower(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"spatial_pool_mode", "spatial_pool_out_channels", "spatial_pool_stride",
                 "video_seq_length"});
  read_llava_next_tower(config, spec);
}

void read_llava_onevision_tower(ConfigReader& config, ModelSpec& spec) {
  read_tiled_tower(config, spec, {-1, FeatureRows::all}, onevision_tiles(read_most_kept(config)));
}

}  // namespace headroom::detail
