// Towers of Step-3, Step 3.7 and MiniCPM-V, which are counted.
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kEmbedding = WeightRole::embedding;
constexpr auto kProjector = WeightRole::projector;

/// A convolution of `side` × `side` positions, with a bias.
void add_convolution(TowerWeights& tower, const std::string& name, std::int64_t in,
                     std::int64_t out, std::int64_t side) {
  tower.add(name + ".weight", {out, in, side, side}, WeightRole::convolution);
  tower.add(name + ".bias", {out}, WeightRole::convolution);
}

/// Keys of the processor of Step-3 and Step 3.7, and the stride of a convolution of theirs.
void ignore_step_keys(ConfigReader& config) {
  config.ignore({"understand_projector_stride", "image_token_len", "patch_token_len",
                 "im_start_token", "im_end_token", "im_patch_token"});
}

}  // namespace

void count_step3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1792);
  layers.inner = vision.size_or({"intermediate_size"}, 3072);
  layers.count = vision.layers_or({"num_hidden_layers"}, 63);
  const std::int64_t halved = vision.size_or({"output_hidden_size"}, 4096);
  const std::int64_t twice = product(vision, "output_hidden_size", 2, halved);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 728, 14);
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("class_token", {layers.width}, kEmbedding);
  tower.linear("patch_embeddings", grid.elements, layers.width, kEmbedding);
  tower.add("position_embeddings.weight", {vision.sum("image_size", grid.patches, 1), layers.width},
            kEmbedding);
  tower.layers(layers);
  TowerWeights projector(spec, ModelPart::projector);
  add_convolution(projector, "first_halving", layers.width, halved, 2);
  add_convolution(projector, "second_halving", halved, twice, 3);
  projector.linear_if(config.flag_or({"projector_bias"}, true), "linear", twice, spec.hidden_size,
                      kProjector);
  config.ignore({"use_im_start_end", "vision_select_layer"});
  ignore_step_keys(config);
}

void count_step3p7_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  constexpr double kRatio = 8960.0 / 1536;  // of Step3p7VisionConfig
  TowerLayers layers;
  layers.width = vision.size_or({"width", "hidden_size"}, 1536);
  // The class computes the network's width whatever intermediate_size says.
  layers.inner =
      truncated(vision, "mlp_ratio", vision.number_or({"mlp_ratio"}, kRatio), layers.width);
  layers.count = vision.layers_or({"layers", "num_hidden_layers"}, 47);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 728, 14);
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, grid.elements}, kEmbedding);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, kEmbedding);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.layers(layers);
  tower.add("layers.scales", {2, layers.width}, WeightRole::norm, layers.count);
  const std::int64_t twice = product(vision, "width", 2, layers.width);
  const std::int64_t wide = product(vision, "width", 2, twice);
  add_convolution(tower, "first_halving", layers.width, twice, 3);
  add_convolution(tower, "second_halving", twice, wide, 3);
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear_if(config.flag_or({"projector_bias"}, false), "linear", wide, spec.hidden_size,
                      kProjector);
  vision.ignore({"heads", "intermediate_size", "layer_scale_init_value", "ls_init_value",
                 "pool_type", "use_abs_posemb", "use_cls_token", "use_ln_post", "use_ln_pre",
                 "use_rope2d", "output_dim"});
  ignore_tower_keys(vision);
  vision.finish();
  ignore_step_keys(config);
}

void count_minicpmv_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1152);
  layers.inner = vision.size_or({"intermediate_size"}, 4304);
  layers.count = vision.layers_or({"num_hidden_layers"}, 27);
  if (config.flag_or({"drop_vision_last_layer"}, false)) --layers.count;
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 980, 14);
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kEmbedding);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, kEmbedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  const std::int64_t width = spec.hidden_size;
  TowerWeights resampler(spec, ModelPart::projector);
  resampler.add("queries", {config.size_or({"query_num"}, 64), width}, kProjector);
  if (layers.width != width) {
    resampler.linear_if(false, "key_value", layers.width, width, kProjector);
  }
  resampler.linear("attention.in", width, product(config, "hidden_size", 3, width), kProjector);
  resampler.linear("attention.out", width, width, kProjector);
  for (const char* const name : {"query_norm", "key_value_norm", "norm"}) {
    resampler.norm(NormKind::layer_norm, name, width);
  }
  resampler.add("projection", {width, width}, kProjector);
  config.ignore({"version", "slice_config", "slice_mode", "batch_vision_input", "use_image_id",
                 "vision_batch_size", "image_size", "patch_size", "im_end_token",
                 "im_start_token"});
}

}  // namespace headroom::detail
