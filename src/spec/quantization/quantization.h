// Reads the quantisation that a config states.
#pragma once

#include <string>
#include <string_view>

#include "../config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads `quantization_config`, `quantization` (MLX) or `compression_config` of `config` into
/// `spec.storage`, if one is there. Throws Error{invalid_input} for values that would change a
/// figure and are unknown; an unknown method only leaves a note.
void read_quantization(ConfigReader& config, ModelSpec& spec);

/// Reads the text of a hf_quant_config.json, which ModelOpt writes next to config.json. It decides
/// where the config states no quantisation, and adds the type of the KV-cache.
void read_quantization_file(std::string_view json, const std::string& file, ModelSpec& spec);

}  // namespace headroom::detail
