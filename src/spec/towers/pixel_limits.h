// Limits that a preprocessor sets on the pixels of an image.
#pragma once

#include <string>
#include <string_view>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads the text of a preprocessor_config.json into the limits of Qwen's towers: min_pixels and
/// max_pixels, or size.shortest_edge and size.longest_edge, which hold pixels there; and into those
/// of GLM-5.3 and Muse Glimmer: min_image_tokens and max_image_tokens. Other towers'
/// preprocessors mean something else by these keys, and stay as they are. Throws
/// Error{invalid_input} for limits that are no integers of at least 1, or in the wrong order.
void read_pixel_limits(std::string_view json, const std::string& file, ModelSpec& spec);

}  // namespace headroom::detail
