#include "images.h"

#include <algorithm>
#include <iterator>
#include <numbers>

namespace headroom::measured {
namespace {

/// Coordinate of row or column number `index` of `count`.
float coordinate_of(PatchCoordinates coordinates, std::int64_t index, std::int64_t count) {
  const auto place = static_cast<float>(index);
  switch (coordinates) {
    case PatchCoordinates::from_zero:
      return place;
    case PatchCoordinates::from_one:
      return place + 1;
    case PatchCoordinates::centres:
      break;
  }
  constexpr auto kTurn = static_cast<float>(2 * std::numbers::pi);
  return kTurn * (2 * ((place + 0.5F) / static_cast<float>(count)) - 1);
}

/// Tokens of the prompt at the front of sequence `batch`: those of type 0.
std::int64_t prompt_length(const TokenInputs& tokens, std::int64_t batch) {
  if (tokens.type_ids.empty()) return tokens.seq_len;
  const auto begin = tokens.type_ids.begin() + batch * tokens.seq_len;
  return std::find_if(begin, begin + tokens.seq_len, [](std::int64_t type) { return type != 0; }) -
         begin;
}

/// Joins the spans of neighbouring visual tokens of one sequence.
void join_images(const TokenInputs& tokens, std::vector<KeySpan>& spans) {
  const std::vector<std::int64_t>& rows = tokens.visual_rows;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    const auto continues = [&](std::size_t i) {
      return rows[i] == rows[i - 1] + 1 && rows[i] % tokens.seq_len != 0;
    };
    while (end < rows.size() && continues(end)) ++end;
    const std::int64_t begin = rows[first] % tokens.seq_len;
    const KeySpan span{begin, begin + static_cast<std::int64_t>(end - first)};
    for (std::size_t i = first; i < end; ++i) spans[static_cast<std::size_t>(rows[i])] = span;
    first = end;
  }
}

/// Consecutive lengths of rows, equal ones together. A probe is the only query of its rows.
std::vector<ImageRows> runs_of_rows(std::span<const std::int64_t> lengths, ImageScope scope) {
  std::vector<ImageRows> parts;
  std::int64_t row = 0;
  std::int64_t pair = 0;
  std::int64_t query = 0;
  for (const std::int64_t rows : lengths) {
    const std::int64_t queries = scope == ImageScope::probe ? 1 : rows;
    if (parts.empty() || parts.back().rows != rows) {
      parts.push_back({row, pair, 0, rows, query, queries});
    }
    ++parts.back().images;
    row += rows;
    pair += rows * queries;
    query += queries;
  }
  return parts;
}

}  // namespace

ImageGrid grid_of(const ImageSize& size, const ImageSpec& image) {
  return {size.height / image.patch_size, size.width / image.patch_size};
}

std::vector<PatchPoint> points_of(const ImageSpec& image, PatchCoordinates coordinates,
                                  std::span<const ImageGrid> grids) {
  std::vector<PatchPoint> all;
  for (const ImageGrid& grid : grids) {
    all.insert(all.end(), static_cast<std::size_t>(image.prefix_tokens()), PatchPoint{});
    for (const PatchPlace& place : patch_places(image, grid)) {
      all.push_back({coordinate_of(coordinates, place.row, grid.rows),
                     coordinate_of(coordinates, place.column, grid.columns)});
    }
  }
  return all;
}

std::vector<std::int64_t> rows_of_patches(const ImageSpec& image,
                                          std::span<const ImageGrid> grids) {
  std::vector<std::int64_t> rows;
  for (const ImageGrid& grid : grids) {
    const std::size_t first = rows.size();
    rows.resize(first + static_cast<std::size_t>(grid.patches()));
    auto row = static_cast<std::int64_t>(first);
    for (const PatchPlace& place : patch_places(image, grid)) {
      rows[first + static_cast<std::size_t>(place.row * grid.columns + place.column)] = row++;
    }
  }
  return rows;
}

AxisPositions axis_positions(const TokenInputs& tokens, std::span<const ImageGrid> grids) {
  AxisPositions positions;
  auto visual = tokens.visual_rows.begin();
  auto grid = grids.begin();
  for (std::int64_t batch = 0; batch < tokens.batch; ++batch) {
    std::int64_t next = 0;
    const std::int64_t end = (batch + 1) * tokens.seq_len;
    for (std::int64_t row = batch * tokens.seq_len; row < end;) {
      if (visual == tokens.visual_rows.end() || *visual != row) {
        positions.of_tokens.push_back({next, next, next});
        ++next;
        ++row;
        continue;
      }
      for (std::int64_t i = 0; i < grid->patches(); ++i, ++row, ++visual) {
        positions.of_tokens.push_back({next, next + i / grid->columns, next + i % grid->columns});
      }
      next += std::max(grid->rows, grid->columns);
      ++grid;
    }
    positions.shifts.push_back(next - tokens.seq_len);
  }
  return positions;
}

std::optional<AxisPositions> axis_positions(const ModelSpec& spec, const ModelInputs& inputs) {
  if (!inputs.images || !has_three_axes(spec.position.rope.axes)) return std::nullopt;
  const std::int64_t side = spec.tower->projector.merged_side();
  std::vector<ImageGrid> grids;
  for (const ImageSize& size : inputs.images->sizes) {
    const ImageGrid patches = grid_of(size, *spec.tower->embedding.image);
    grids.push_back({patches.rows / side, patches.columns / side});
  }
  return axis_positions(inputs.main, grids);
}

std::vector<std::int64_t> shifts_after(const ModelSpec& spec, const ModelInputs& inputs) {
  const std::optional<AxisPositions> prompt = axis_positions(spec, inputs);
  return prompt ? prompt->shifts : std::vector<std::int64_t>();
}

std::vector<ImageRows> rows_of_images(const ImageSpec& image, std::span<const ImageGrid> grids,
                                      ImageScope scope) {
  std::vector<std::int64_t> lengths;
  for (const ImageGrid& grid : grids) {
    switch (scope) {
      case ImageScope::image:
      case ImageScope::probe:
        lengths.push_back(grid.patches() + image.prefix_tokens());
        break;
      case ImageScope::window:
        std::ranges::copy(window_rows(image, grid), std::back_inserter(lengths));
        break;
    }
  }
  return runs_of_rows(lengths, scope);
}

std::vector<ImageRows> rows_of_clips(const AudioTowerSpec& tower,
                                     std::span<const std::int64_t> clip_frames) {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t frames : clip_frames) {
    std::ranges::copy(attended_rows(tower, frames), std::back_inserter(lengths));
  }
  return runs_of_rows(lengths, ImageScope::image);
}

std::vector<KeySpan> key_spans(const TokenInputs& tokens, Lookahead lookahead) {
  std::vector<KeySpan> spans;
  for (std::int64_t batch = 0; batch < tokens.batch; ++batch) {
    const std::int64_t prompt = lookahead == Lookahead::prompt ? prompt_length(tokens, batch) : 0;
    for (std::int64_t i = 0; i < tokens.seq_len; ++i) {
      spans.push_back(i < prompt ? KeySpan{0, prompt} : KeySpan{i, i + 1});
    }
  }
  if (!sees_later_image(lookahead)) return spans;
  join_images(tokens, spans);
  if (lookahead == Lookahead::image) return spans;
  for (std::size_t row = 0; row < spans.size(); ++row) {
    spans[row].begin = static_cast<std::int64_t>(row) % tokens.seq_len;
  }
  return spans;
}

}  // namespace headroom::measured
