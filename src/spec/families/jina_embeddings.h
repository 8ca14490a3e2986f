// Jina Embeddings v3: XLM-RoBERTa with RoPE, and adapters of tasks. Internal to src/spec/families.
#pragma once

#include <span>

#include "../config_reader.h"
#include "../stored/stored_names.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// True for the config of the publisher's class, whose model type is that of XLM-RoBERTa.
[[nodiscard]] bool is_rotary_roberta(const ConfigReader& config);

/// Reads such a config.
void read_rotary_roberta(ConfigReader& config, ModelSpec& spec);

/// Its tensors and those of its adapters.
[[nodiscard]] std::span<const NameRule> rotary_roberta_rules();

}  // namespace headroom::detail
