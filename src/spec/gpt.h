// Reader shared by GPT-2 and its descendants, whose configs have two spellings of each size.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// Reads sizes, causal multi-head attention without biases, a plain FFN with biases, and LayerNorms
/// before each part and at the end into `spec.decoder`.
void read_gpt_sizes(ConfigReader& config, ModelSpec& spec, std::int64_t positions_when_absent);

}  // namespace headroom::detail
