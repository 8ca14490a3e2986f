// Parts that image towers share.
#pragma once

#include <array>

#include "../common_keys.h"

namespace headroom::detail {

/// Choices of a class with the config's keys vision_feature_layer and
/// vision_feature_select_strategy absent.
struct TiledDefaults {
  std::int64_t feature_layer = -2;
  FeatureRows rows = FeatureRows::patches;
};

/// Reads vision_config; what does not run is noted in `spec`.
using ReadEncoder = TowerSpec (*)(ConfigReader& vision, ModelSpec& spec);

/// The encoder that vision_config.model_type names; without one, `when_absent`.
[[nodiscard]] TowerSpec read_named_encoder(ConfigReader& config, ModelSpec& spec,
                                           ReadEncoder when_absent);
/// The encoder of vision_config, which is always `read`.
[[nodiscard]] TowerSpec read_only_encoder(ConfigReader& config, ModelSpec& spec, ReadEncoder read);
/// Hidden states of the tower that vision_feature_layer names; without it, of `when_absent`.
void read_feature_layers(ConfigReader& config, TowerSpec& tower, std::int64_t when_absent);
/// Gives a text model that names no sections of RoPE (mrope_section) those of its class: pairs of
/// time, height and width. A model whose heads have another number of pairs does not run.
void use_class_sections(ModelSpec& spec, const std::array<std::int64_t, 3>& sections);
/// The encoder that vision_config.model_type names; CLIP without one.
[[nodiscard]] TowerSpec read_clip_or_siglip(ConfigReader& config, ModelSpec& spec);
/// Reads which hidden states the projector reads, and adds its two layers.
void read_features(ConfigReader& config, ModelSpec& spec, TowerSpec& tower,
                   const TiledDefaults& absent);

/// Phi-4 multimodal's images by the keys of Microsoft's class: `embedding` is its image_embd_layer.
void read_phi4mm_vision_tower(ConfigReader& config, ConfigReader& embedding, ModelSpec& spec);
/// Phi-4 multimodal's audio tower, which is counted, by the keys of either class.
void count_phi4_audio(ConfigReader& audio, ModelSpec& spec);

}  // namespace headroom::detail
