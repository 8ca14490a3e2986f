// Squarified treemaps of two levels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "html.h"
#include "picture.h"
#include "picture_frame.h"

namespace headroom::detail {
namespace {

constexpr double kTreemapHeight = 300;
constexpr double kLineHeight = 16;

struct Rectangle {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

double sum_of(std::span<const Tile> tiles) {
  return std::accumulate(tiles.begin(), tiles.end(), 0.0,
                         [](double sum, const Tile& tile) { return sum + tile.size; });
}

/// The worst ratio of sides of a row of tiles along a side of `length`.
double worst_ratio(std::span<const Tile> row, double area_per_size, double length) {
  const double depth = sum_of(row) * area_per_size / length;
  double worst = 0;
  for (const Tile& tile : row) {
    const double side = tile.size * area_per_size / depth;
    worst = std::max({worst, side / depth, depth / side});
  }
  return worst;
}

/// Tiles of the next row: more, as long as their shapes become squarer.
std::size_t row_size(std::span<const Tile> tiles, double area_per_size, double length) {
  std::size_t count = 1;
  while (count < tiles.size() && worst_ratio(tiles.first(count + 1), area_per_size, length) <=
                                     worst_ratio(tiles.first(count), area_per_size, length)) {
    ++count;
  }
  return count;
}

/// One rectangle for each tile. Sizes are positive and descend.
std::vector<Rectangle> squarified(std::span<const Tile> tiles, Rectangle space) {
  std::vector<Rectangle> result;
  const double area_per_size = space.width * space.height / sum_of(tiles);
  while (!tiles.empty()) {
    const bool is_wide = space.width >= space.height;
    const double length = is_wide ? space.height : space.width;
    const auto row = tiles.first(row_size(tiles, area_per_size, length));
    const double depth = sum_of(row) * area_per_size / length;
    double at = 0;
    for (const Tile& tile : row) {
      const double side = tile.size * area_per_size / depth;
      result.push_back(is_wide ? Rectangle{space.x, space.y + at, depth, side}
                               : Rectangle{space.x + at, space.y, side, depth});
      at += side;
    }
    (is_wide ? space.x : space.y) += depth;
    (is_wide ? space.width : space.height) -= depth;
    tiles = tiles.subspan(row.size());
  }
  return result;
}

std::vector<Tile> largest_first(std::vector<Tile> tiles) {
  std::erase_if(tiles, [](const Tile& tile) { return !(tile.size > 0); });
  std::ranges::stable_sort(tiles, std::ranges::greater(), &Tile::size);
  return tiles;
}

/// The name and the share, as far as they have room.
std::string tile_label(const Tile& tile, const Rectangle& space, double total) {
  const auto room = static_cast<std::size_t>(std::max(0.0, space.width - 8) / kCharacterWidth);
  if (space.height < kLineHeight + 4 || display_width(tile.name) > room) return {};
  std::string text = fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", space.x + 4,
                                 space.y + kLineHeight - 1, html_escaped(tile.name));
  if (space.height >= 2 * kLineHeight + 4) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{:.1f} %</text>", space.x + 4,
                        space.y + 2 * kLineHeight - 1, 100 * tile.size / total);
  }
  return text;
}

std::string tile_box(const Tile& tile, const Rectangle& space, double total,
                     std::string_view colour) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"#ffffff\" stroke-width=\"1\"><title>{}: {:.2f} %</title></rect>\n",
      space.x, space.y, space.width, space.height, colour, html_escaped(tile.name),
      100 * tile.size / total);
}

std::string tile_elements(const Tile& tile, const Rectangle& space, double total,
                          std::string_view colour) {
  std::string result;
  const std::vector<Tile> parts = largest_first(tile.parts);
  if (parts.size() < 2) {
    result = tile_box(tile, space, total, colour);
  } else {
    const std::vector<Rectangle> places = squarified(parts, space);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      result += tile_box(parts[i], places[i], total, colour);
    }
  }
  return result + fmt::format("<g fill=\"#1b1f24\">{}</g>\n", tile_label(tile, space, total));
}

std::string treemap_description(const std::vector<Tile>& tiles, double total) {
  constexpr std::size_t kNamed = 3;
  std::string text = "Largest: ";
  for (std::size_t i = 0; i < std::min(kNamed, tiles.size()); ++i) {
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", tiles[i].name,
                        100 * tiles[i].size / total);
  }
  return text;
}

}  // namespace

std::string treemap(const std::string& title, const std::string& total, std::vector<Tile> tiles) {
  tiles = largest_first(std::move(tiles));
  if (tiles.empty()) return {};
  const double sum = sum_of(tiles);
  const std::vector<Rectangle> places = squarified(tiles, {0, 0, kPictureWidth, kTreemapHeight});
  std::string elements;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    elements += tile_elements(tiles[i], places[i], sum, picture_colour(i));
  }
  return picture_frame(fmt::format("{}: {}", title, total), treemap_description(tiles, sum),
                       kTreemapHeight, elements);
}

}  // namespace headroom::detail
