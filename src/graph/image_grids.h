// Patches of an image that its preprocessor leaves in about its own shape.
#pragma once

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::detail {

/// Scales an image down until its longer side fits, and completes its blocks of patches. Source:
/// get_resize_output_image_size, transformers, models/pixtral.
[[nodiscard]] ImageGrid native_grid(const TowerSpec& tower, ImageSize size);

/// Rounds the sides of an image to whole blocks of patches, within the limits of its pixels.
/// Source: smart_resize, transformers, models/qwen2_vl.
[[nodiscard]] ImageGrid rounded_grid(const TowerSpec& tower, ImageSize size);

/// Completes the sides of an image to whole blocks, scaled to the fewest blocks or to the most.
/// Source: smart_resize, transformers, models/glm5_next.
[[nodiscard]] ImageGrid completed_grid(const TowerSpec& tower, ImageSize size);

/// Rounds the blocks along each side of an image down or up, whichever are nearest its aspect
/// ratio. Of two equally near grids the class takes the first in the order of a Python set. Source:
/// smart_resize, transformers, models/muse_glimmer.
[[nodiscard]] ImageGrid grid_of_nearest_aspect(const TowerSpec& tower, ImageSize size);

/// Scales an image until its whole patches are as many as the tower's positions, or fewer. Source:
/// get_image_size_for_max_num_patches, transformers, models/siglip2.
[[nodiscard]] ImageGrid grid_of_most_patches(const ImageSpec& image, ImageSize size);

}  // namespace headroom::detail
