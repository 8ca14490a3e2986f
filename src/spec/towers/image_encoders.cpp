#include "image_encoders.h"

namespace headroom::detail {
namespace {

struct EncoderDefaults {
  std::int64_t width = 768;
  std::int64_t inner = 3072;
  std::int64_t layers = 12;
};

TowerLayers read_encoder_layers(ConfigReader& vision, const EncoderDefaults& absent) {
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, absent.width);
  layers.inner = vision.size_or({"intermediate_size"}, absent.inner);
  layers.count = vision.layers_or({"num_hidden_layers"}, absent.layers);
  ignore_tower_keys(vision);
  return layers;
}

}  // namespace

std::int64_t count_siglip(ConfigReader& vision, ModelSpec& spec) {
  const TowerLayers layers = read_encoder_layers(vision, {});
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 16);
  const bool pooled = vision.flag_or({"vision_use_head"}, true);
  // SigLIP 2 for images of any shape names the rows of its table.
  const std::int64_t positions = vision.size_or({"num_patches"}, grid.patches);
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, WeightRole::embedding);
  tower.add("position_embeddings.weight", {positions, layers.width}, WeightRole::embedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  if (pooled) add_pooling_head(spec, layers.width, layers.inner);
  return layers.width;
}

}  // namespace headroom::detail
