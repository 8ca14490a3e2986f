// Types of activations and KV-cache that a quantisation states.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "../config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// The type of `bits` bits that a scheme calls "float" or "int"; empty for 16 bits and more. Throws
/// Error{invalid_input} for any other.
[[nodiscard]] std::optional<StatedType> stated_type(const ConfigReader& config,
                                                    std::string_view type, std::int64_t bits);

/// Reads `kv_cache_scheme` (compressed-tensors) or `kv_cache_quant_algo` (ModelOpt).
[[nodiscard]] std::optional<StatedType> read_kv_cache_type(ConfigReader& config);

}  // namespace headroom::detail
