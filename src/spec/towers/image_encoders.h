// Image encoders whose weights are counted, as towers of several families.
#pragma once

#include "tower_weights.h"

namespace headroom::detail {

/// Reads a SigLIP config and counts the encoder, with its pooling head unless vision_use_head is
/// false. Returns the encoder's width.
[[nodiscard]] std::int64_t count_siglip(ConfigReader& vision, ModelSpec& spec);

}  // namespace headroom::detail
