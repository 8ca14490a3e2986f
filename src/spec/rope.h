// Rotary positions in configs, in the older and the newer style.
#pragma once

#include <string_view>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// What of a family's rotary positions its config does not say.
struct RopeDefaults {
  double theta = 10000;
  double partial_rotary_factor = 1;
  RopeLayout layout = RopeLayout::half_split;
  std::int64_t original_max_position_embeddings = 0;  ///< 0: max_position_embeddings
  bool by_layer_type = false;  ///< rope_parameters holds an object for each type, read apart
};

/// Reads rope_theta, rope_scaling, partial_rotary_factor (until transformers 4) or rope_parameters
/// (since 5), for heads of `head_dim`. `max_position_embeddings` must have been read into
/// `position`.
[[nodiscard]] RopeSpec read_rope(ConfigReader& config, const PositionSpec& position,
                                 std::int64_t head_dim, const RopeDefaults& defaults);

/// The same where rope_parameters holds one object for each of the layer types; `layer_type` names
/// the one that is meant. Without that key, `otherwise` comes back.
[[nodiscard]] RopeSpec read_rope_of(ConfigReader& config, std::string_view layer_type,
                                    const PositionSpec& position, std::int64_t head_dim,
                                    const RopeSpec& otherwise);

}  // namespace headroom::detail
