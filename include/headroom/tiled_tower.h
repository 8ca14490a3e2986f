// A tower that reads all tiles of an image at once, those that only complete the image too, and
// whose rows a decoder reads in layers of cross-attention (Llama 3.2 Vision, arXiv 2407.21783,
// section 7; transformers, models/mllama). It is a TowerSpec with images on canvases of a list
// (TileList) and ImageRule::tiles_of_best_fit: an image has `most_tiles` tiles, without the whole.
//
// Layers of variant 0 come first; those of variant 1, whose sublayers have a gate each, read their
// normed output. The projector reads the last layer's rows, then those of `feature_layers`, whose
// features stand side by side channel by channel.
#pragma once

#include <cstdint>

#include "headroom/workload.h"

namespace headroom {

/// Rows of placeholders behind the vocabulary in the table of word embeddings.
inline constexpr std::int64_t kPlaceholderRows = 8;

/// Returns whether `tower` reads all tiles of an image at once.
[[nodiscard]] bool reads_canvases(const TowerSpec& tower);

/// Returns whether layers of the decoder without self-attention attend to images, each with a gate
/// tanh(g) on its attention and its network (Flamingo, arXiv 2204.14198, section 3.1.2).
[[nodiscard]] bool attends_to_images(const ModelSpec& spec);

/// Returns whether placeholders of images are rows of their own, behind the vocabulary.
[[nodiscard]] bool has_placeholder_rows(const ModelSpec& spec);

/// Rows of one tile: its class token and its patches.
[[nodiscard]] std::int64_t rows_of_tile(const TowerSpec& tower);

/// Rows of one tile in the layers: a multiple of 8, completed with zeros.
[[nodiscard]] std::int64_t padded_rows_of_tile(const TowerSpec& tower);

/// Keys of one image in a layer of cross-attention: all rows of its tiles.
[[nodiscard]] std::int64_t keys_of_image(const TowerSpec& tower);

/// Layers before those with gates.
[[nodiscard]] std::int64_t local_layers(const TowerSpec& tower);

/// The tiles that an image of this size fills: the canvas that it fills with the least
/// enlargement, else the least reduction; of equal ones the smallest.
[[nodiscard]] ImageTiling canvas_of_image(const TowerSpec& tower, ImageSize size);

/// Number of an image's canvas in the list, from 1 (aspect_ratio_ids). Throws Error{invalid_input}
/// if the list lacks it.
[[nodiscard]] std::int64_t number_of_canvas(const TowerSpec& tower, const ImageTiling& canvas);

}  // namespace headroom
