#include "image_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/tiled_tower.h"
#include "images.h"
#include "tile_inputs.h"
#include "with_noun.h"

namespace headroom::measured {
namespace {

using checkpoint::StoredTensor;
using checkpoint::tensor_place;

/// Channels, height and width of the images of a tensor: its last three sizes.
struct StoredImages {
  std::int64_t count = 1;
  std::int64_t channels = 0;
  ImageSize size;
};

StoredImages images_of(const StoredTensor& tensor) {
  const auto dimensions = tensor.shape.size();
  StoredImages images{1,
                      tensor.shape[dimensions - 3],
                      {tensor.shape[dimensions - 2], tensor.shape[dimensions - 1]}};
  for (std::size_t i = 0; i + 3 < dimensions; ++i) images.count *= tensor.shape[i];
  return images;
}

/// Appends the upper left part of an image [channels, height, width].
void append_cropped(const StoredImages& stored, const float* image, ImageSize size,
                    std::vector<float>& pixels) {
  for (std::int64_t row = 0; row < stored.channels * stored.size.height; ++row) {
    if (row % stored.size.height >= size.height) continue;
    const float* const begin = image + row * stored.size.width;
    pixels.insert(pixels.end(), begin, begin + size.width);
  }
}

void require_size(const ModelSpec& spec, ImageSize size, const std::string& place) {
  const ImageSpec& image = *spec.tower->embedding.image;
  const std::int64_t unit = image.patch_size * spec.tower->projector.merged_side();
  const bool whole = size.height % unit == 0 && size.width % unit == 0;
  const ImageGrid grid = grid_of(size, image);
  const bool has_features = spec.tower->pooling || visual_tokens(*spec.tower, grid) > 0;
  const bool tiles_grid = has_features && (whole || size.height == size.width);
  const bool has_positions =
      spec.tower->position.table != PositionTable::rows_and_columns ||
      std::max(grid.rows, grid.columns) <= spec.tower->position.max_position_embeddings;
  if (fits(image, size) && tiles_grid && has_positions) return;
  const std::string multiples = fmt::format("store images in multiples of {}", unit);
  throw Error(ErrorCode::invalid_input,
              fmt::format("has an image of {} × {}, which {} does not read", size.height,
                          size.width, spec.name),
              place,
              image.image_size == 0
                  ? multiples
                  : fmt::format("{} if the family takes such sizes, or of {} × {}", multiples,
                                image.image_size, image.image_size));
}

/// Visual tokens of each image, or of each of its tiles.
std::vector<std::int64_t> tokens_of_images(const TowerSpec& tower, const WorkloadImages& images) {
  std::vector<std::int64_t> tokens;
  for (const ImageTiling& tiling : images.tilings) tokens.push_back(packed_tokens(tower, tiling));
  if (!tokens.empty()) return tokens;
  for (const ImageGrid& grid : images.grids) tokens.push_back(visual_tokens(tower, grid));
  return tokens;
}

}  // namespace

bool fits(const ImageSpec& image, ImageSize size) {
  switch (image.interpolation) {
    case PositionInterpolation::none:
      return size.height == image.image_size && size.width == image.image_size;
    case PositionInterpolation::bicubic:
    case PositionInterpolation::bicubic_antialiased:
    case PositionInterpolation::linear:
    case PositionInterpolation::linear_centres:
    case PositionInterpolation::linear_antialiased:
    case PositionInterpolation::linear_swapped:
    case PositionInterpolation::any_size:
      break;
  }
  return size.height >= image.patch_size && size.width >= image.patch_size;
}

TowerInputs read_images(const checkpoint::SafetensorsFile& file, const std::string& name,
                        const ModelSpec& spec, const std::vector<ImageSize>& sizes) {
  const StoredTensor* const tensor = file.find(name);
  const std::string place = tensor_place(file.path(), name);
  const bool is_images = tensor != nullptr && tensor->shape.size() >= 4 &&
                         std::ranges::all_of(tensor->shape, [](auto size) { return size > 0; });
  const StoredImages stored = is_images ? images_of(*tensor) : StoredImages{};
  if (stored.channels != spec.tower->embedding.image->num_channels) {
    throw Error(ErrorCode::invalid_input,
                "has no matching tensor [images, channels, height, width]", place,
                "store the pixels of all images");
  }
  if (!sizes.empty() && std::ssize(sizes) != stored.count) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("has {}, but there are {} image_sizes",
                            detail::with_noun(stored.count, "image"), sizes.size()),
                place, "give one size per image");
  }
  const std::int64_t floats = stored.channels * stored.size.height * stored.size.width;
  std::vector<float> values(static_cast<std::size_t>(stored.count * floats));
  checkpoint::copy_as_float32(*tensor, values, place);
  file.require_unchanged();
  TowerInputs images;
  for (std::int64_t i = 0; i < stored.count; ++i) {
    const ImageSize size = sizes.empty() ? stored.size : sizes[static_cast<std::size_t>(i)];
    require_size(spec, size, place);
    append_cropped(stored, values.data() + i * floats, size, images.pixels);
    images.sizes.push_back(size);
  }
  return images;
}

namespace {

/// Sides of whole tiles, at most `most` along each, where sizes are those of the tiles; any size
/// where a list has the tiles.
bool has_whole_tiles(const TowerSpec& tower, ImageSize size, std::int64_t most) {
  if (tower.rule == ImageRule::tiles_of_list) return true;
  const std::int64_t side = tower.embedding.image->image_size;
  const auto fits_tiles = [&](std::int64_t length) {
    return length >= side && length % side == 0 && length / side <= most;
  };
  return fits_tiles(size.height) && fits_tiles(size.width);
}

}  // namespace

TowerInputs read_tiles(const checkpoint::SafetensorsFile& file, const std::string& name,
                       const ModelSpec& spec, const std::vector<ImageSize>& sizes) {
  const StoredTensor* const tensor = file.find(name);
  const std::string place = tensor_place(file.path(), name);
  const std::size_t dimensions = tensor == nullptr ? 0 : tensor->shape.size();
  const bool is_images =
      dimensions >= 4 && std::ranges::all_of(tensor->shape, [](auto size) { return size > 0; });
  const StoredImages stored = is_images ? images_of(*tensor) : StoredImages{};
  const std::int64_t slots = dimensions >= 5 ? tensor->shape[dimensions - 4] : 0;  // of an image
  const ImageSpec& image = *spec.tower->embedding.image;
  TowerInputs images;
  std::vector<std::int64_t> stored_tiles;  // those that images fill
  bool fills_slots = true;                 // no image needs more tiles than the tensor has for it
  const std::int64_t most = slots > 0 ? slots : stored.count;
  for (std::size_t i = 0; i < sizes.size() && fills_slots; ++i) {
    fills_slots = has_whole_tiles(*spec.tower, sizes[i], most);
    if (!fills_slots) break;
    images.tilings.push_back(stated_tiling(*spec.tower, sizes[i]));
    const ImageTiling& tiling = images.tilings.back();
    const auto first = slots > 0 ? static_cast<std::int64_t>(i) * slots : std::ssize(stored_tiles);
    const std::int64_t tiles = 1 + tiling.tile_rows * tiling.tile_columns;
    fills_slots = tiles <= most;
    if (!fills_slots) break;
    for (std::int64_t tile = 0; tile < tiles; ++tile) stored_tiles.push_back(first + tile);
  }
  const std::int64_t wanted = slots > 0 ? std::ssize(sizes) * slots : std::ssize(stored_tiles);
  const bool matches = is_images && stored.channels == image.num_channels &&
                       fits(image, stored.size) && !stored_tiles.empty() && fills_slots &&
                       wanted == stored.count;
  if (!matches) {
    throw Error(ErrorCode::invalid_input,
                "has no matching tensor [images, tiles, channels, height, width]", place,
                "store the whole and the tiles of every image, and its size in image_sizes");
  }
  const std::int64_t floats = stored.channels * stored.size.height * stored.size.width;
  std::vector<float> values(static_cast<std::size_t>(stored.count * floats));
  checkpoint::copy_as_float32(*tensor, values, place);
  file.require_unchanged();
  for (const std::int64_t tile : stored_tiles) {
    const auto begin = values.begin() + tile * floats;
    images.pixels.insert(images.pixels.end(), begin, begin + floats);
    images.sizes.push_back(stored.size);
  }
  return images;
}

TowerInputs read_patches(const checkpoint::SafetensorsFile& file, const std::string& name,
                         const ModelSpec& spec, const std::vector<ImageGrid>& grids) {
  const ImageSpec& image = *spec.tower->embedding.image;
  const StoredTensor* const tensor = file.find(name);
  const std::string place = tensor_place(file.path(), name);
  TowerInputs images;
  std::int64_t patches = 0;
  for (const ImageGrid& grid : grids) {
    const ImageSize size{grid.rows * image.patch_size, grid.columns * image.patch_size};
    require_size(spec, size, place);
    images.sizes.push_back(size);
    patches += grid.patches();
  }
  const std::int64_t elements = image.patch_elements();
  std::vector<std::int64_t> shape = tensor == nullptr ? std::vector<std::int64_t>() : tensor->shape;
  const bool has_sides = shape.size() == 4 && shape[1] == image.num_channels &&
                         shape[2] == image.patch_size && shape[3] == image.patch_size;
  if (has_sides) shape = {shape[0], elements};
  const bool padded =
      shape.size() == 3 && shape[0] == std::ssize(grids) && shape[2] == elements &&
      std::ranges::all_of(grids, [&](const ImageGrid& grid) { return grid.patches() <= shape[1]; });
  if (!padded && shape != std::vector<std::int64_t>{patches, elements}) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("has no matching tensor [{}, {}]", patches, elements), place,
                "store one row for each patch of the images");
  }
  const std::int64_t rows = padded ? shape[0] * shape[1] : patches;
  std::vector<float> stored(static_cast<std::size_t>(rows * elements));
  checkpoint::copy_as_float32(*tensor, stored, place);
  file.require_unchanged();
  const float* from = stored.data();
  for (const ImageGrid& grid : grids) {
    const std::int64_t floats = grid.patches() * elements;
    images.pixels.insert(images.pixels.end(), from, from + floats);
    from += padded ? shape[1] * elements : floats;
  }
  return images;
}

void find_placeholders(TokenInputs& tokens, const ModelSpec& spec) {
  for (std::size_t row = 0; row < tokens.ids.size(); ++row) {
    if (!is_filled(spec, tokens.ids[row])) continue;
    const bool sound =
        std::ranges::find(spec.audio_tokens, tokens.ids[row]) != spec.audio_tokens.end();
    (sound ? tokens.audio_rows : tokens.visual_rows).push_back(static_cast<std::int64_t>(row));
    const bool in_table = tokens.ids[row] >= 0 && tokens.ids[row] < spec.embedding.vocab_size;
    if (!in_table && !spec.embedding.placeholder_id) tokens.ids[row] = 0;
  }
}

void require_placeholders(const TokenInputs& tokens, const std::optional<TowerInputs>& images,
                          const ModelSpec& spec, const std::string& where) {
  std::int64_t wanted = 0;
  if (images && !images->tilings.empty()) {
    for (const ImageTiling& tiling : images->tilings) wanted += packed_tokens(*spec.tower, tiling);
  } else if (images) {
    for (const ImageSize& size : images->sizes) {
      wanted += visual_tokens(*spec.tower, grid_of(size, *spec.tower->embedding.image));
    }
  }
  if (wanted == std::ssize(tokens.visual_rows)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("has {} placeholders of images, but the images become {} tokens",
                          tokens.visual_rows.size(), wanted),
              where, "give one placeholder per visual token, and all images as pixel_values");
}

void add_random_images(const ModelSpec& spec, const Workload& workload, std::mt19937_64& generator,
                       ModelInputs& inputs) {
  if (workload.phase == Phase::decode) {  // their keys are in the cache
    inputs.encoder = TokenInputs{workload.batch_size, workload.enc_seq_len, {}, {}, {}};
    return;
  }
  const ImageSpec& image = *spec.tower->embedding.image;
  std::normal_distribution<float> normal;
  inputs.images.emplace();
  const std::int64_t sequences = spec.tower->pooling ? 1 : workload.batch_size;
  const std::vector<std::int64_t> tokens = tokens_of_images(*spec.tower, workload.images);
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    for (const ImageGrid& grid : workload.images.grids) {
      inputs.images->sizes.push_back(
          {grid.rows * image.patch_size, grid.columns * image.patch_size});
    }
    std::ranges::copy(workload.images.tilings, std::back_inserter(inputs.images->tilings));
    std::int64_t row = sequence * workload.seq_len;
    for (const std::int64_t count : tokens) {
      ++row;  // the text before the image
      for (std::int64_t i = 0; i < count; ++i) inputs.main.visual_rows.push_back(row++);
    }
  }
  for (const ImageSize& size : inputs.images->sizes) {
    const std::int64_t pixels = grid_of(size, image).patches() * image.patch_elements();
    for (std::int64_t i = 0; i < pixels; ++i) inputs.images->pixels.push_back(normal(generator));
  }
  if (attends_to_images(spec)) {
    inputs.encoder = keys_of_images(spec, inputs.main, *inputs.images, spec.name);
  }
}

}  // namespace headroom::measured
