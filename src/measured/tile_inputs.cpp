#include "tile_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>

#include "headroom/error.h"
#include "headroom/tiled_tower.h"

namespace headroom::measured {
namespace {

using KeyMask = std::vector<std::uint8_t>;

/// Tiles that an image fills.
std::int64_t filled_tiles(const ImageTiling& canvas) {
  return canvas.tile_rows * canvas.tile_columns;
}

/// 1 for the rows of an image's patches and class tokens, tiles of `rows_of_tile` rows each.
KeyMask filled_rows(const TowerSpec& tower, const ImageTiling& canvas, std::int64_t rows_of_tile) {
  KeyMask mask;
  for (std::int64_t tile = 0; tile < tower.most_tiles; ++tile) {
    for (std::int64_t row = 0; row < rows_of_tile; ++row) {
      const bool filled = tile < filled_tiles(canvas) && row < headroom::rows_of_tile(tower);
      mask.push_back(filled ? 1 : 0);
    }
  }
  return mask;
}

/// The images of one sequence: their placeholders, and the number of the first image.
struct SequenceImages {
  std::vector<std::int64_t> places;
  std::size_t first = 0;
};

SequenceImages images_of_sequence(const TokenInputs& tokens, std::int64_t sequence) {
  SequenceImages images;
  for (const std::int64_t row : tokens.visual_rows) {
    if (row / tokens.seq_len < sequence) ++images.first;
    if (row / tokens.seq_len == sequence) images.places.push_back(row % tokens.seq_len);
  }
  return images;
}

/// Images that token `token` sees, as a range: those up to the last placeholder that is not behind
/// it, from the first of its run of neighbours on. Source: get_cross_attention_token_mask,
/// transformers, models/mllama.
struct SeenImages {
  std::size_t first = 0;
  std::size_t end = 0;
  bool operator==(const SeenImages&) const = default;
};

SeenImages seen_by(const SequenceImages& images, std::int64_t token) {
  SeenImages seen;
  while (seen.end < images.places.size() && images.places[seen.end] <= token) ++seen.end;
  if (seen.end == 0) return seen;
  seen.first = seen.end - 1;
  const auto follows = [&](std::size_t i) { return images.places[i] == images.places[i - 1] + 1; };
  while (seen.first > 0 && follows(seen.first)) --seen.first;
  return seen;
}

/// 1 for the keys of a sequence that belong to the images `seen` of it.
KeyMask keys_of(const TowerSpec& tower, const std::vector<ImageTiling>& canvases,
                const SequenceImages& images, const SeenImages& seen) {
  KeyMask mask;
  for (std::size_t i = 0; i < images.places.size(); ++i) {
    KeyMask own = filled_rows(tower, canvases[images.first + i], rows_of_tile(tower));
    if (i < seen.first || i >= seen.end) std::ranges::fill(own, std::uint8_t{0});
    mask.insert(mask.end(), own.begin(), own.end());
  }
  return mask;
}

}  // namespace

TowerInputs read_canvases(const checkpoint::SafetensorsFile& file, const std::string& name,
                          const ModelSpec& spec, const std::vector<std::int64_t>& numbers) {
  const TowerSpec& tower = *spec.tower;
  const ImageSpec& image = *tower.embedding.image;
  const checkpoint::StoredTensor* const tensor = file.find(name);
  const std::string place = checkpoint::tensor_place(file.path(), name);
  const auto images = std::ssize(numbers);
  const std::vector<std::int64_t> wanted{tower.most_tiles, image.num_channels, image.image_size,
                                         image.image_size};
  const bool has_tiles = tensor != nullptr && tensor->shape.size() == 6 &&
                         tensor->shape[0] * tensor->shape[1] == images &&
                         std::ranges::equal(wanted, std::span(tensor->shape).subspan(2));
  if (!has_tiles) {
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("has no matching tensor [sequences, images, {}]", fmt::join(wanted, ", ")),
        place, "store all tiles of every image, and its number in aspect_ratio_ids");
  }
  TowerInputs inputs;
  const std::int64_t side = image.image_size;
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > std::ssize(tower.tiles.heights)) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("has no canvas for the aspect_ratio_id {}", number), place,
                  "give the number of one of supported_aspect_ratios, from 1");
    }
    const auto index = static_cast<std::size_t>(number - 1);
    ImageTiling& canvas = inputs.tilings.emplace_back();
    canvas.tile_rows = tower.tiles.heights[index] / side;
    canvas.tile_columns = tower.tiles.widths[index] / side;
  }
  inputs.sizes.assign(static_cast<std::size_t>(images * tower.most_tiles), {side, side});
  const std::int64_t pixels = image.num_channels * side * side;
  inputs.pixels.resize(inputs.sizes.size() * static_cast<std::size_t>(pixels));
  checkpoint::copy_as_float32(*tensor, inputs.pixels, place);
  file.require_unchanged();
  return inputs;
}

TokenInputs keys_of_images(const ModelSpec& spec, const TokenInputs& tokens,
                           const TowerInputs& images, const std::string& where) {
  const auto count = std::ssize(images.tilings) / tokens.batch;
  TokenInputs keys;
  keys.batch = tokens.batch;
  keys.seq_len = count * keys_of_image(*spec.tower);
  for (std::int64_t sequence = 0; sequence < tokens.batch; ++sequence) {
    const SequenceImages own = images_of_sequence(tokens, sequence);
    if (std::ssize(own.places) != count || count == 0) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("has {} images in sequence {}, but {} in a sequence on average",
                              own.places.size(), sequence, count),
                  where, "give all sequences as many images");
    }
    const KeyMask mask =
        keys_of(*spec.tower, images.tilings, own, seen_by(own, tokens.seq_len - 1));
    keys.key_mask.insert(keys.key_mask.end(), mask.begin(), mask.end());
  }
  return keys;
}

std::vector<ImageRows> rows_of_canvases(const TowerSpec& tower,
                                        const std::vector<ImageTiling>& canvases) {
  const std::int64_t of_tile = padded_rows_of_tile(tower);
  const std::int64_t rows = tower.most_tiles * of_tile;
  std::vector<ImageRows> parts;
  for (std::size_t image = 0; image < canvases.size(); ++image) {
    const auto filled =
        std::make_shared<const KeyMask>(filled_rows(tower, canvases[image], of_tile));
    const std::int64_t first = static_cast<std::int64_t>(image) * rows;
    for (std::int64_t row = 0; row < rows;) {
      const std::uint8_t kind = (*filled)[static_cast<std::size_t>(row)];
      std::int64_t end = row + 1;
      while (end < rows && (*filled)[static_cast<std::size_t>(end)] == kind) ++end;
      ImageRows part{first, (first + row) * rows, 1, rows, first + row, end - row};
      if (kind == 0) part.key_mask = filled;
      parts.push_back(std::move(part));
      row = end;
    }
  }
  return parts;
}

std::vector<ImageRows> tokens_by_images(const ModelSpec& spec, const ModelInputs& inputs) {
  const TokenInputs& tokens = inputs.main;
  const std::int64_t keys = inputs.encoder->seq_len;
  std::vector<ImageRows> parts;
  for (std::int64_t sequence = 0; sequence < tokens.batch; ++sequence) {
    const SequenceImages images = images_of_sequence(tokens, sequence);
    for (std::int64_t token = 0; token < tokens.seq_len;) {
      const SeenImages seen = seen_by(images, token);
      std::int64_t end = token + 1;
      while (end < tokens.seq_len && seen_by(images, end) == seen) ++end;
      const std::int64_t row = sequence * tokens.seq_len + token;
      ImageRows part{0, row * keys, 1, keys, row, end - token};
      part.sequence = sequence;
      if (seen.end > 0) {
        part.key_mask = std::make_shared<const KeyMask>(
            keys_of(*spec.tower, inputs.images->tilings, images, seen));
      }
      parts.push_back(std::move(part));
      token = end;
    }
  }
  return parts;
}

std::vector<std::int64_t> rows_before_images(const TokenInputs& tokens) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < tokens.batch * tokens.seq_len; ++row) {
    const SequenceImages images = images_of_sequence(tokens, row / tokens.seq_len);
    if (seen_by(images, row % tokens.seq_len).end == 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace headroom::measured
