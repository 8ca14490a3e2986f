// The encoder of image patches that ViT and its descendants share.
#pragma once

#include <span>

#include "common_keys.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// Reads the image's sizes, the position table and pre-norm layers into `spec`: all but the
/// feed-forward network.
void read_vision_transformer(ConfigReader& config, ModelSpec& spec, PrefixTokens prefix);

/// Names of ViT's tensors.
[[nodiscard]] std::span<const NameRule> vit_rules();

}  // namespace headroom::detail
