// Parts that towers of CLIP and SigLIP share.
#pragma once

#include "../common_keys.h"

namespace headroom::detail {

/// Choices of a class with the config's keys vision_feature_layer and
/// vision_feature_select_strategy absent.
struct TiledDefaults {
  std::int64_t feature_layer = -2;
  FeatureRows rows = FeatureRows::patches;
};

/// The encoder that vision_config.model_type names; CLIP without one.
[[nodiscard]] TowerSpec read_clip_or_siglip(ConfigReader& config, ModelSpec& spec);
/// Reads which hidden states the projector reads, and adds its two layers.
void read_features(ConfigReader& config, ModelSpec& spec, TowerSpec& tower,
                   const TiledDefaults& absent);

}  // namespace headroom::detail
