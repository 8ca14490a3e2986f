// Images of an input file, and random ones. Internal to src/measured.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "inputs.h"
#include "safetensors.h"

namespace headroom::measured {

/// Reads the images `name`, [images, channels, height, width] or [sequences, images, channels,
/// height, width], each cropped to its entry of `sizes` if there are any. Throws
/// Error{invalid_input} for sizes that the tower does not run.
[[nodiscard]] TowerInputs read_images(const checkpoint::SafetensorsFile& file,
                                      const std::string& name, const ModelSpec& spec,
                                      const std::vector<ImageSize>& sizes);

/// Reads the tiles `name` of images of these sizes in pixels, [images, tiles, channels, height,
/// width], the whole image first; tiles beyond an image's own are padding. Without their dimension
/// the tiles of all images follow each other. Throws Error{invalid_input}.
[[nodiscard]] TowerInputs read_tiles(const checkpoint::SafetensorsFile& file,
                                     const std::string& name, const ModelSpec& spec,
                                     const std::vector<ImageSize>& sizes);

/// Reads the patches `name` of images with these grids, [patches, elements] or, padded at the end,
/// [images, patches, elements]: of each image its blocks in raster order, and the patches of a
/// block likewise. Throws Error{invalid_input}.
[[nodiscard]] TowerInputs read_patches(const checkpoint::SafetensorsFile& file,
                                       const std::string& name, const ModelSpec& spec,
                                       const std::vector<ImageGrid>& grids);

/// Throws Error{invalid_input} at `where` unless the tokens have one placeholder per visual token.
void require_placeholders(const TokenInputs& tokens, const std::optional<TowerInputs>& images,
                          const ModelSpec& spec, const std::string& where);

/// Random images in the workload's grids, and their placeholders in `inputs.main`: every image
/// follows one token of text. Images that are compared with texts have no placeholders.
void add_random_images(const ModelSpec& spec, const Workload& workload, std::mt19937_64& generator,
                       ModelInputs& inputs);

/// Replaces placeholders beyond the vocabulary by 0, and lists the rows of all placeholders.
void find_placeholders(TokenInputs& tokens, const ModelSpec& spec);

/// Returns whether headroom runs images of this height and width: the config's own, or any that
/// holds a patch if the family has positions for it.
[[nodiscard]] bool fits(const ImageSpec& image, ImageSize size);

}  // namespace headroom::measured
