#include <algorithm>
#include <cstdint>

#include "headroom/tiled_tower.h"
#include "headroom/workload.h"

namespace headroom {
namespace {

/// Size of the sliding window of a model's windowed layers; 0: none.
std::int64_t sliding_window(const StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const WindowSpec& window = stack.attention_of(variant).window;
    if (window.kind == WindowKind::sliding) return window.size;
  }
  return 0;
}

/// How visual tokens see those of their image in a stack's layers; none in layers without images.
Lookahead lookahead_of(const StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const Lookahead lookahead = stack.attention_of(variant).lookahead;
    if (sees_later_image(lookahead)) return lookahead;
  }
  return Lookahead::none;
}

/// 0 + 1 + … + (count - 1)
Integer sum_below(Integer count) { return checked_multiply(count, count - 1) / 2; }

/// Blocks of patches of a window.
struct BlockRange {
  std::int64_t first_row = 0;
  std::int64_t end_row = 0;
  std::int64_t first_column = 0;
  std::int64_t end_column = 0;
};

/// Windows of an image in raster order; those at the lower and right edges may be smaller.
std::vector<BlockRange> windows_of(const ImageSpec& spec, const ImageGrid& image) {
  const std::int64_t rows = image.rows / spec.block_side;
  const std::int64_t columns = image.columns / spec.block_side;
  if (spec.window_blocks == 0) return {{0, rows, 0, columns}};
  const std::int64_t side = spec.window_blocks;
  std::vector<BlockRange> windows;
  for (std::int64_t row = 0; row < rows; row += side) {
    for (std::int64_t column = 0; column < columns; column += side) {
      windows.push_back(
          {row, std::min(rows, row + side), column, std::min(columns, column + side)});
    }
  }
  return windows;
}

/// Σ n² over the parts of at most `side` blocks that `blocks` in a row are cut into.
Integer sum_of_squares(std::int64_t blocks, std::int64_t side) {
  const Integer rest = blocks % side;
  return checked_add(checked_multiply(blocks / side, checked_multiply(side, side)),
                     checked_multiply(rest, rest));
}

/// Pairs of rows of an image that are in one window. Windows of a wide image are too many to list.
Integer pairs_in_windows(const ImageSpec& spec, const ImageGrid& image) {
  const std::int64_t rows = image.rows / spec.block_side;
  const std::int64_t columns = image.columns / spec.block_side;
  const std::int64_t longest = std::max({rows, columns, std::int64_t{1}});
  const std::int64_t side = spec.window_blocks > 0 ? spec.window_blocks : longest;
  const Integer rows_of_block = checked_multiply(spec.block_side, spec.block_side);
  const Integer blocks =
      checked_multiply(sum_of_squares(rows, side), sum_of_squares(columns, side));
  return checked_multiply(checked_multiply(rows_of_block, rows_of_block), blocks);
}

template <class Tower>
ModelSpec encoder_of_any(const Tower& tower) {
  ModelSpec spec;
  spec.kind = ModelKind::encoder;
  spec.hidden_size = tower.hidden_size;
  spec.embedding = tower.embedding;
  spec.position = tower.position;
  spec.encoder = tower.stack;
  return spec;
}

}  // namespace

ModelSpec encoder_of(const TowerSpec& tower) { return encoder_of_any(tower); }

ModelSpec encoder_of(const AudioTowerSpec& tower) { return encoder_of_any(tower); }

std::vector<PatchPlace> patch_places(const ImageSpec& spec, const ImageGrid& image) {
  std::vector<PatchPlace> places;
  const std::int64_t side = spec.block_side;
  for (const BlockRange& window : windows_of(spec, image)) {
    for (std::int64_t row = window.first_row; row < window.end_row; ++row) {
      for (std::int64_t column = window.first_column; column < window.end_column; ++column) {
        for (std::int64_t i = 0; i < side * side; ++i) {
          places.push_back({row * side + i / side, column * side + i % side});
        }
      }
    }
  }
  return places;
}

std::vector<std::int64_t> window_rows(const ImageSpec& spec, const ImageGrid& image) {
  std::vector<std::int64_t> rows;
  for (const BlockRange& window : windows_of(spec, image)) {
    rows.push_back((window.end_row - window.first_row) * (window.end_column - window.first_column) *
                   spec.block_side * spec.block_side);
  }
  return rows;
}

std::int64_t visual_tokens(const TowerSpec& tower, const ImageGrid& image) {
  if (tower.pooling) return 0;
  if (const std::int64_t queries = tower.projector.queries(); queries > 0) return queries;
  const std::int64_t side = tower.projector.merged_side();
  const std::int64_t blocks = (image.rows / side) * (image.columns / side);
  switch (tower.projector.rows) {
    case FeatureRows::patches:
      return blocks;
    case FeatureRows::all:
      break;
  }
  return blocks + tower.embedding.image->prefix_tokens();
}

namespace {

/// Sums over the tiles of images that a tower reads at once; an image is one token of the text.
ImageTotals totals_of_tiles(const TowerSpec& tower, std::int64_t tiles) {
  const Integer rows = checked_multiply(tower.most_tiles, padded_rows_of_tile(tower));
  ImageTotals totals;
  totals.images = tiles;
  totals.tokens = tiles / tower.most_tiles;
  totals.patches = checked_int64(checked_multiply(tiles, tower.embedding.image->num_patches()));
  totals.pairs = checked_int64(checked_multiply(totals.tokens, checked_multiply(rows, rows)));
  totals.window_pairs = totals.pairs;
  return totals;
}

}  // namespace

ImageTotals image_totals(const ModelSpec& spec, std::span<const ImageGrid> images,
                         std::int64_t sequences) {
  const TowerSpec& tower = *spec.tower;
  if (reads_canvases(tower)) return totals_of_tiles(tower, std::ssize(images));
  const std::int64_t prefix = tower.embedding.image->prefix_tokens();
  const Integer window = sliding_window(spec.main_stack());
  Integer patches = 0;
  Integer pairs = 0;
  Integer window_pairs = 0;
  Integer tokens = 0;
  Integer later = 0;
  Integer outside_window = 0;
  for (const ImageGrid& image : images) {
    const Integer rows = image.patches() + prefix;
    const Integer own_tokens = visual_tokens(tower, image);
    patches = checked_add(patches, image.patches());
    pairs = checked_add(pairs, checked_multiply(rows, rows));
    window_pairs = checked_add(window_pairs, pairs_in_windows(*tower.embedding.image, image));
    tokens = checked_add(tokens, own_tokens);
    later = checked_add(later, sum_below(own_tokens));
    // The j-th token lacks the first j - window of its image's tokens.
    outside_window =
        checked_add(outside_window, sum_below(std::max<Integer>(own_tokens - window + 1, 1)));
  }
  ImageTotals totals;
  totals.images = static_cast<std::int64_t>(images.size());
  totals.patches = checked_int64(patches);
  totals.pairs = checked_int64(pairs);
  totals.window_pairs = checked_int64(window_pairs);
  totals.tokens = checked_int64(tokens);
  const Lookahead lookahead = lookahead_of(spec.main_stack());
  if (lookahead == Lookahead::none) return totals;
  if (lookahead == Lookahead::image_in_window) outside_window = 0;
  totals.later_pairs = checked_int64(later / sequences);
  totals.windowed_pairs = checked_int64((later + outside_window) / sequences);
  return totals;
}

}  // namespace headroom
