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

/// SigLIP's pooling head: a learned query that attends to all patches.
void add_pooling_head(TowerWeights& tower, const TowerLayers& layers) {
  tower.add("head.probe", {layers.width}, WeightRole::head);
  tower.linear("head.attention.qkv", layers.width, 3 * layers.width, WeightRole::attention);
  tower.linear("head.attention.output", layers.width, layers.width, WeightRole::attention);
  tower.norm(NormKind::layer_norm, "head.norm", layers.width);
  tower.linear("head.mlp.up", layers.width, layers.inner, WeightRole::mlp);
  tower.linear("head.mlp.down", layers.inner, layers.width, WeightRole::mlp);
}

}  // namespace

std::int64_t count_siglip(ConfigReader& vision, ModelSpec& spec) {
  const TowerLayers layers = read_encoder_layers(vision, {});
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 16);
  const bool pooled = vision.flag_or({"vision_use_head"}, true);
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, WeightRole::embedding);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, WeightRole::embedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  if (pooled) add_pooling_head(tower, layers);
  return layers.width;
}

std::int64_t count_clip(ConfigReader& vision, ModelSpec& spec) {
  const TowerLayers layers = read_encoder_layers(vision, {});
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 32);
  vision.ignore({"initializer_factor"});
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("class_token", {layers.width}, WeightRole::embedding);
  tower.add("patch_embeddings.weight", {layers.width, grid.elements}, WeightRole::embedding);
  tower.add("position_embeddings.weight", {grid.patches + 1, layers.width}, WeightRole::embedding);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  return layers.width;
}

std::int64_t count_pixtral(ConfigReader& vision, ModelSpec& spec) {
  TowerLayers layers = read_encoder_layers(vision, {1024, 4096, 24});
  layers.ffn = FfnKind::gated;
  layers.norm = NormKind::rms_norm;
  layers.qkv_bias = layers.output_bias = layers.ffn_bias = false;
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 1024, 16);
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, grid.elements}, WeightRole::embedding);
  tower.norm(NormKind::rms_norm, "first_norm", layers.width);
  tower.layers(layers);
  return layers.width;
}

}  // namespace headroom::detail
