// Image encoders whose weights are counted, as towers of several families.
#pragma once

#include "tower_weights.h"

namespace headroom::detail {

/// Reads a SigLIP config and counts the encoder, with its pooling head unless vision_use_head is
/// false. Returns the encoder's width.
[[nodiscard]] std::int64_t count_siglip(ConfigReader& vision, ModelSpec& spec);
/// CLIP (arXiv 2103.00020): a class token, a norm before the layers.
[[nodiscard]] std::int64_t count_clip(ConfigReader& vision, ModelSpec& spec);

}  // namespace headroom::detail
