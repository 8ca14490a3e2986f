// Keys that all families share, and checks that several readers use.
#pragma once

#include <cstdint>
#include <string_view>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// "bfloat16" for "torch.bfloat16", as some tools write a type.
[[nodiscard]] std::string without_torch(const std::string& type);
/// The type of the weights: dtype, or its former name torch_dtype; "" if neither is there. Where
/// they differ, notes that dtype counts, as in transformers 5.
[[nodiscard]] std::string read_dtype(ConfigReader& config, ModelSpec& spec);

/// Ignores the Hugging Face keys that change no figure, and rejects the values that would.
void read_common_keys(ConfigReader& config, ModelSpec& spec);

/// Rejects the values of common keys that would change the layers of any stack.
void expect_usual_layers(ConfigReader& config);

/// Reads the activation that `keys` name, in Hugging Face's words.
[[nodiscard]] ActivationKind read_activation(ConfigReader& config, ConfigReader::Keys keys,
                                             ActivationKind otherwise);

/// Reads `feature_map` of linear attention.
[[nodiscard]] FeatureMapKind read_feature_map(ConfigReader& config);

/// Multi-head attention with `heads` heads over `hidden_size`. Throws if they do not divide it.
[[nodiscard]] AttentionSpec multi_head_attention(const ConfigReader& config,
                                                 std::string_view heads_key, std::int64_t heads,
                                                 std::int64_t hidden_size);

/// a·b, for a size that depends on `key`. Throws if it does not fit 64 bits.
[[nodiscard]] std::int64_t product(const ConfigReader& config, std::string_view key, std::int64_t a,
                                   std::int64_t b);

/// ⌊factor·size⌋, for a size that depends on `key`. Throws unless it is from 0 to kLargestSize.
[[nodiscard]] std::int64_t truncated(const ConfigReader& config, std::string_view key,
                                     double factor, std::int64_t size);

/// Inner width of a gated network in place of a plain one of width `inner`: two thirds of it,
/// rounded up to a multiple of 8. Source: Dinov2SwiGLUFFN, transformers, models/dinov2.
[[nodiscard]] std::int64_t dinov2_gated_width(std::int64_t inner);

/// √count, the side of the square table or grid whose size is `key`. Throws if it is not whole.
[[nodiscard]] std::int64_t square_side(const ConfigReader& config, std::string_view key,
                                       std::int64_t count);

}  // namespace headroom::detail
