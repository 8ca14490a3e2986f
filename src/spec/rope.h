// RoPE in configs of transformers 4 and 5.
#pragma once

#include <optional>
#include <string_view>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Defaults of a family's RoPE.
struct RopeDefaults {
  double theta = 10000;
  double partial_rotary_factor = 1;
  RopeLayout layout = RopeLayout::half_split;
  std::int64_t original_max_position_embeddings = 0;  ///< 0: max_position_embeddings
  bool by_layer_type = false;  ///< rope_parameters has one object per layer type; see read_rope_of
};

/// Reads rope_theta, rope_scaling and partial_rotary_factor (up to transformers 4) or
/// rope_parameters (since 5), for heads of `head_dim`. Requires `position.max_position_embeddings`.
[[nodiscard]] RopeSpec read_rope(ConfigReader& config, const PositionSpec& position,
                                 std::int64_t head_dim, const RopeDefaults& defaults);

/// Reads the object of `layer_type` in rope_parameters; returns `otherwise` if the key is absent.
[[nodiscard]] RopeSpec read_rope_of(ConfigReader& config, std::string_view layer_type,
                                    const PositionSpec& position, std::int64_t head_dim,
                                    const RopeSpec& otherwise);

/// Temperature of queries by `llama_4_scaling_beta` of a RoPE (Ministral 3), if it has that key.
/// Throws Error{invalid_input} without the context length in training.
[[nodiscard]] std::optional<TemperatureTuning> query_scaling(const ConfigReader& config,
                                                             const RopeSpec& rope);

}  // namespace headroom::detail
