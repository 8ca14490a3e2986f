#include "token_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "headroom/error.h"
#include "image_inputs.h"
#include "similar.h"

namespace headroom::measured {
namespace {

using nlohmann::json;

/// Pixels or patches of a side, so that no product of two sides overflows.
constexpr std::int64_t kLongestSide = std::int64_t{1} << 30U;
/// Patches of all images, so that neither their sum nor that of their tokens overflows.
constexpr std::int64_t kMostPatches = std::int64_t{1} << 60U;

}  // namespace

TokenReader::TokenReader(const json& object, std::string file, std::string pointer,
                         const ModelSpec& spec)
    : object_(object), file_(std::move(file)), pointer_(std::move(pointer)), spec_(spec) {}

bool TokenReader::has(const char* key) const { return object_.contains(key); }

void TokenReader::refuse_others(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string hint = headroom::detail::did_you_mean(key, known);
    if (hint.empty()) hint = fmt::format("use {}", fmt::join(known, ", "));
    throw Error(ErrorCode::invalid_input, "is not a key of inputs", place_of(key.c_str()), hint);
  }
}

TokenInputs TokenReader::tokens(const char* key) const {
  TokenInputs inputs;
  const auto rows = integer_rows(key);
  inputs.batch = static_cast<std::int64_t>(rows.size());
  inputs.seq_len = static_cast<std::int64_t>(rows.front().size());
  inputs.ids = flatten(rows, key);
  for (const std::int64_t id : inputs.ids) {
    const bool placeholder = std::ranges::find(spec_.tower_tokens, id) != spec_.tower_tokens.end();
    if (!placeholder) require_below(id, spec_.embedding.vocab_size, key);
  }
  std::vector<std::int64_t> unfilled = inputs.ids;
  std::erase_if(unfilled, [&](std::int64_t id) { return is_filled(spec_, id); });
  require_text_tokens(unfilled, spec_, place_of(key));
  find_placeholders(inputs, spec_);
  return inputs;
}

std::vector<std::int64_t> TokenReader::values_like(const char* key, const TokenInputs& tokens,
                                                   std::int64_t limit) const {
  const auto rows = integer_rows(key);
  std::vector<std::int64_t> values = flatten(rows, key);
  for (const std::int64_t value : values) require_below(value, limit, key);
  if (values.size() != tokens.ids.size()) fail(key, "does not have the shape of the tokens");
  return values;
}

std::vector<ImageSize> TokenReader::image_sizes() const {
  std::vector<ImageSize> sizes;
  if (!has("image_sizes")) return sizes;
  for (const std::vector<std::int64_t>& size : integer_rows("image_sizes")) {
    if (size.size() != 2) fail("image_sizes", "has an entry that is not [height, width]");
    require_lengths(size, "image_sizes");
    sizes.push_back({size[0], size[1]});
  }
  return sizes;
}

std::vector<std::int64_t> TokenReader::aspect_ratio_ids() const {
  constexpr const char* kKey = "aspect_ratio_ids";
  return has(kKey) ? flatten(integer_rows(kKey), kKey) : std::vector<std::int64_t>();
}

std::vector<ImageGrid> TokenReader::image_grids() const {
  std::vector<ImageGrid> grids;
  std::int64_t patches = 0;
  if (has("image_position_ids")) {
    for (const json& image : object_.at("image_position_ids")) grids.push_back(grid_from(image));
    return grids;
  }
  const bool flat = has("spatial_shapes");
  const char* const key = flat ? "spatial_shapes" : "image_grid_thw";
  for (const std::vector<std::int64_t>& grid : integer_rows(key)) {
    const std::size_t sides = flat ? 2 : 3;
    if (grid.size() != sides) {
      fail(key, fmt::format("has an entry that is not [{}rows, columns]", flat ? "" : "1, "));
    }
    require_lengths(grid, key);
    if (!flat && grid[0] != 1) fail(key, "has a video, and only images run");
    grids.push_back({grid[sides - 2], grid[sides - 1]});
    patches += grids.back().patches();
    if (patches > kMostPatches) fail(key, "has more patches than any file");
  }
  return grids;
}

void TokenReader::require_unpadded(const char* key) const {
  if (!has(key)) return;
  for (const std::vector<std::int64_t>& row : integer_rows(key)) {
    if (std::ranges::count(row, 1) == std::ssize(row)) continue;
    throw Error(ErrorCode::invalid_input, "masks frames, and headroom runs whole segments only",
                place_of(key), "give sound without padding");
  }
}

std::string TokenReader::place_of(const char* key) const {
  return file_ + "#" + pointer_ + "/" + key;
}

void TokenReader::fail(const char* key, const std::string& message) const {
  throw Error(ErrorCode::invalid_input, message, place_of(key),
              "give one list of integers per sequence, all of the same length");
}

void TokenReader::require_lengths(const std::vector<std::int64_t>& sides, const char* key) const {
  const auto odd = [](std::int64_t side) { return side < 1 || side > kLongestSide; };
  if (std::ranges::any_of(sides, odd)) fail(key, "has a size that no image has");
}

ImageGrid TokenReader::grid_from(const json& image) const {
  constexpr const char* kKey = "image_position_ids";
  ImageGrid grid;
  Rows places;
  if (!image.is_array() || image.empty()) fail(kKey, "has an image without patches");
  for (const json& place : image) {
    places.push_back(integers(place, kKey));
    if (places.back().size() != 2) fail(kKey, "has a place that is not [column, row]");
    const auto beyond = [](std::int64_t index) { return index < -1 || index >= kLongestSide; };
    if (std::ranges::any_of(places.back(), beyond)) fail(kKey, "has a place outside any image");
    grid.columns = std::max(grid.columns, places.back()[0] + 1);
    grid.rows = std::max(grid.rows, places.back()[1] + 1);
  }
  for (std::int64_t patch = 0; patch < std::ssize(places); ++patch) {
    const bool padding = patch / std::max<std::int64_t>(grid.columns, 1) >= grid.rows;
    const std::vector<std::int64_t> wanted =
        padding ? std::vector<std::int64_t>{-1, -1}
                : std::vector{patch % grid.columns, patch / grid.columns};
    if (places[static_cast<std::size_t>(patch)] != wanted) {
      fail(kKey, "does not list the patches row by row");
    }
  }
  if (std::ssize(places) < grid.patches()) fail(kKey, "lacks patches of a row");
  return grid;
}

TokenReader::Rows TokenReader::integer_rows(const char* key) const {
  const json* list = has(key) ? &object_.at(key) : nullptr;
  if (list == nullptr) fail(key, "is missing");
  if (!list->is_array() || list->empty()) fail(key, "is not a list of tokens");
  Rows rows;
  if (list->front().is_array()) {
    for (const json& row : *list) rows.push_back(integers(row, key));
  } else {
    rows.push_back(integers(*list, key));
  }
  return rows;
}

std::vector<std::int64_t> TokenReader::integers(const json& row, const char* key) const {
  if (!row.is_array() || row.empty()) fail(key, "is not a list of tokens");
  std::vector<std::int64_t> values;
  for (const json& value : row) {
    if (!value.is_number_integer()) fail(key, "has a value that is not an integer");
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

std::vector<std::int64_t> TokenReader::flatten(const Rows& rows, const char* key) const {
  std::vector<std::int64_t> values;
  for (const auto& row : rows) {
    if (row.size() != rows.front().size()) fail(key, "has sequences of different lengths");
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

void TokenReader::require_below(std::int64_t value, std::int64_t limit, const char* key) const {
  if (value >= 0 && value < limit) return;
  fail(key, fmt::format("{} is not from 0 to {}", value, limit - 1));
}

}  // namespace headroom::measured
