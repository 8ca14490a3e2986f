// Reader shared by GPT-2 and its descendants, whose configs have two spellings of each size.
#pragma once

#include <span>
#include <string>

#include "common_keys.h"
#include "gguf/gguf_form.h"
#include "model_class.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// Reads sizes, causal multi-head attention without biases, a plain FFN with biases, and LayerNorms
/// before each part and at the end into `spec.decoder`.
void read_gpt_sizes(ConfigReader& config, ModelSpec& spec, std::int64_t positions_when_absent);

/// `prefix` + DoubleHeadsModel: the language model, tied by default, beside one score of a choice
/// (Radford et al. 2018, section 3.3) by its last token, which the class reads unless mc_token_ids
/// names another.
[[nodiscard]] ModelClasses double_heads_class(const std::string& prefix);

/// Reads the keys of that score, which the other classes ignore.
void read_choice_score(ConfigReader& config, ModelSpec& spec);

/// Stored names by `rules`, with or without "transformer.", beside masks of attention in buffers.
[[nodiscard]] NameTable gpt_names(std::span<const NameRule> rules);

/// GPT-2's spellings of the sizes in a GGUF file.
[[nodiscard]] std::span<const GgufKey> gguf_gpt2_keys();

}  // namespace headroom::detail
