// What the descendants of GPT-2 share, whose configs spell sizes in two ways.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// Sizes, causal multi-head attention without biases, a plain network with biases, and LayerNorms
/// before each part and at the end, into `spec.decoder`.
void read_gpt_sizes(ConfigReader& config, ModelSpec& spec, std::int64_t positions_when_absent);

}  // namespace headroom::detail
