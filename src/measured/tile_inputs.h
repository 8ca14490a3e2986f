// Inputs of a tower that reads all tiles of an image at once (tiled_tower.h), and which rows and
// tokens see which of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "images.h"
#include "inputs.h"
#include "safetensors.h"

namespace headroom::measured {

/// Pixels of all tiles, [images, tiles, channels, height, width] behind a dimension of sequences;
/// `numbers` are the images' canvases (aspect_ratio_ids). Throws Error{invalid_input} if either
/// does not match the tower.
[[nodiscard]] TowerInputs read_canvases(const checkpoint::SafetensorsFile& file,
                                        const std::string& name, const ModelSpec& spec,
                                        const std::vector<std::int64_t>& numbers);

/// Rows of images as keys of a decoder's cross-attention: how many a sequence has, and those that
/// tokens behind the prompt see. Throws Error{invalid_input} at `where` unless all sequences have
/// as many images.
[[nodiscard]] TokenInputs keys_of_images(const ModelSpec& spec, const TokenInputs& tokens,
                                         const TowerInputs& images, const std::string& where);

/// Rows of a tower by image and by the keys that they see: rows of patches see all rows of their
/// image; those that complete a tile or an image see only rows of patches (transformers,
/// _prepare_aspect_ratio_attention_mask).
[[nodiscard]] std::vector<ImageRows> rows_of_canvases(const TowerSpec& tower,
                                                      const std::vector<ImageTiling>& canvases);

/// Tokens of a prompt by the images that they see: those of the last run of placeholders before
/// them, and all rows without any, as transformers' class has it.
[[nodiscard]] std::vector<ImageRows> tokens_by_images(const ModelSpec& spec,
                                                      const ModelInputs& inputs);

/// Rows of `tokens` before the first placeholder of their sequence.
[[nodiscard]] std::vector<std::int64_t> rows_before_images(const TokenInputs& tokens);

}  // namespace headroom::measured
