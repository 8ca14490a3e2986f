#include "sweep_pieces.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace headroom::cli {
namespace {

using Halves = std::pair<SweepGrid, SweepGrid>;

/// `grid` with the first and with the second half of an axis; empty if the axis has one value.
template <class Value>
std::optional<Halves> halves(const SweepGrid& grid, std::vector<Value> SweepGrid::*axis) {
  const std::vector<Value>& values = grid.*axis;
  if (values.size() < 2) return std::nullopt;
  const auto middle = values.begin() + std::ssize(values) / 2;
  Halves parts{grid, grid};
  parts.first.*axis = {values.begin(), middle};
  parts.second.*axis = {middle, values.end()};
  return parts;
}

/// A row without images or sound has no size of them, so that several sizes of a grid with and
/// without them are not independent rows.
bool divides_sizes(const SweepGrid& grid) {
  return std::ranges::find(grid.images, 0) == grid.images.end() &&
         std::ranges::find(grid.audio, 0) == grid.audio.end();
}

/// Halves of the outermost axis with several values. Rows vary by the last axis first.
std::optional<Halves> halves(const SweepGrid& grid) {
  std::optional<Halves> parts;
  const auto try_axes = [&](auto... axes) {
    (void)((parts = halves(grid, axes)).has_value() || ...);
    return parts.has_value();
  };
  if (try_axes(&SweepGrid::images)) return parts;
  if (grid.image_size.size() > 1 && !divides_sizes(grid)) return std::nullopt;
  if (try_axes(&SweepGrid::image_size, &SweepGrid::audio)) return parts;
  if (grid.audio_seconds.size() > 1 && !divides_sizes(grid)) return std::nullopt;
  (void)try_axes(&SweepGrid::audio_seconds, &SweepGrid::attention, &SweepGrid::recompute,
                 &SweepGrid::weights, &SweepGrid::dtype, &SweepGrid::arithmetic,
                 &SweepGrid::kv_types, &SweepGrid::enc_seq_len, &SweepGrid::past_len,
                 &SweepGrid::seq_len, &SweepGrid::batch_size);
  return parts;
}

}  // namespace

void for_each_piece(const SweepGrid& grid, Integer most_rows,
                    const std::function<void(const SweepGrid& piece)>& sink) {
  const std::optional<Halves> parts = size_of(grid) > most_rows ? halves(grid) : std::nullopt;
  if (!parts) {
    sink(grid);
    return;
  }
  for_each_piece(parts->first, most_rows, sink);
  for_each_piece(parts->second, most_rows, sink);
}

}  // namespace headroom::cli
