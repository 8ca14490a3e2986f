// Families whose tower is one of the image encoders, and their projectors.
#include "image_encoders.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// Two layers, from `in` over the text model's width to it.
void add_two_layers(TowerWeights& projector, ConfigReader& config, const ModelSpec& spec,
                    std::int64_t in, bool bias_when_absent) {
  const bool bias = config.flag_or({"multimodal_projector_bias"}, bias_when_absent);
  projector.linear_if(bias, "up", in, spec.hidden_size, WeightRole::projector);
  projector.linear_if(bias, "down", spec.hidden_size, spec.hidden_size, WeightRole::projector);
  config.ignore({"projector_hidden_act", "vision_feature_select_strategy", "image_seq_length"});
}

using CountEncoder = std::int64_t (*)(ConfigReader& vision, ModelSpec& spec);

/// The encoder that vision_config.model_type names.
std::int64_t count_encoder(ConfigReader& config, ModelSpec& spec, CountEncoder when_absent) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const auto count = vision.choice_or<CountEncoder>({"model_type"},
                                                    {{"clip_vision_model", count_clip},
                                                     {"siglip_vision_model", count_siglip},
                                                     {"pixtral", count_pixtral}},
                                                    when_absent);
  const std::int64_t width = count(vision, spec);
  vision.finish();
  return width;
}

}  // namespace

void count_gemma3_tower(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = count_encoder(config, spec, count_siglip);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::rms_norm, "norm", width);
  projector.add("weight", {width, spec.hidden_size}, WeightRole::projector);
}

void count_paligemma_tower(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = count_encoder(config, spec, count_siglip);
  TowerWeights projector(spec, ModelPart::projector);
  const std::int64_t out = config.size_or({"projection_dim"}, spec.hidden_size);
  projector.linear("linear", width, out, WeightRole::projector);
  // The class's attributes; the sizes are the text model's.
  config.ignore({"hidden_size", "vocab_size", "num_image_tokens"});
}

void count_llava_tower(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = count_encoder(config, spec, count_clip);
  const std::int64_t layers = config.entries_or_one("vision_feature_layer");
  TowerWeights projector(spec, ModelPart::projector);
  add_two_layers(projector, config, spec, product(config, "vision_feature_layer", layers, width),
                 true);
  config.ignore({"vocab_size", "ignore_index"});
}

void count_mistral3_tower(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = count_encoder(config, spec, count_pixtral);
  const std::int64_t layers = config.entries_or_one("vision_feature_layer");
  const std::int64_t merged = config.size_or({"spatial_merge_size"}, 2);
  const std::int64_t patches = product(config, "spatial_merge_size", merged, merged);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::rms_norm, "norm", width);
  projector.add("merger.weight", {width, product(config, "spatial_merge_size", patches, width)},
                WeightRole::projector);
  add_two_layers(projector, config, spec, product(config, "vision_feature_layer", layers, width),
                 false);
}

void count_idefics3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1152);
  layers.inner = vision.size_or({"intermediate_size"}, 3072);
  layers.count = vision.layers_or({"num_hidden_layers"}, 12);
  ignore_tower_keys(vision);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 32);
  // Pre-processing of SmolVLM's images and videos.
  vision.ignore({"size", "max_image_size", "tie_word_embeddings", "use_base_siglip"});
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, WeightRole::embedding);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, WeightRole::embedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  const std::int64_t scale = config.size_or({"scale_factor"}, 2);
  const std::int64_t shuffled =
      product(config, "scale_factor", product(config, "scale_factor", scale, scale), layers.width);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("weight", {spec.hidden_size, shuffled}, WeightRole::projector);
  config.ignore({"vocab_size"});
}

}  // namespace headroom::detail
