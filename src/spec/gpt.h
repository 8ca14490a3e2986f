// Reader shared by GPT-2 and its descendants, whose configs have two spellings of each size.
#pragma once

#include <span>

#include "common_keys.h"
#include "gguf/gguf_form.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// Reads sizes, causal multi-head attention without biases, a plain FFN with biases, and LayerNorms
/// before each part and at the end into `spec.decoder`.
void read_gpt_sizes(ConfigReader& config, ModelSpec& spec, std::int64_t positions_when_absent);

/// Stored names by `rules`, with or without "transformer.", beside masks of attention in buffers.
[[nodiscard]] NameTable gpt_names(std::span<const NameRule> rules);

/// GPT-2's spellings of the sizes in a GGUF file.
[[nodiscard]] std::span<const GgufKey> gguf_gpt2_keys();

}  // namespace headroom::detail
