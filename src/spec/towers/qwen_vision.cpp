// Towers of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5 (arXiv 2409.12191, 2502.13923, 2511.21631).
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// Sizes of the patches, and of the text tokens that they are merged into.
struct QwenPatches {
  std::int64_t elements = 0;  ///< of one patch, over channels and frames
  std::int64_t merged = 0;    ///< patches in one text token
};

QwenPatches read_patches(ConfigReader& vision, std::int64_t patch_when_absent) {
  const std::int64_t patch =
      vision.size_or({"patch_size", "spatial_patch_size"}, patch_when_absent);
  const std::int64_t channels = vision.size_or({"in_channels", "in_chans"}, 3);
  const std::int64_t frames = vision.size_or({"temporal_patch_size"}, 2);
  const std::int64_t side = vision.size_or({"spatial_merge_size"}, 2);
  const auto times = [&](std::int64_t a, std::int64_t b) {
    return product(vision, "patch_size", a, b);
  };
  ignore_tower_keys(vision);
  return {times(times(channels, frames), times(patch, patch)), times(side, side)};
}

/// A norm over `normed` dimensions, then two layers from the merged patches to the text model.
void add_merger(TowerWeights& projector, const std::string& name, NormKind norm,
                std::int64_t normed, std::int64_t wide, std::int64_t out, std::int64_t repeat) {
  projector.norm(norm, name + ".norm", normed, repeat);
  projector.linear(name + ".up", wide, wide, WeightRole::projector, repeat);
  projector.linear(name + ".down", wide, out, WeightRole::projector, repeat);
}

/// Width of merged patches, and of the text tokens that they become.
struct Merged {
  std::int64_t width = 0;
  std::int64_t out = 0;
};

Merged count_qwen3_tower(ConfigReader& vision, ModelSpec& spec) {
  const QwenPatches patches = read_patches(vision, 16);
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1152);
  layers.inner = vision.size_or({"intermediate_size"}, 4304);
  layers.count = vision.layers_or({"depth"}, 27);
  const std::int64_t positions = vision.size_or({"num_position_embeddings"}, 2304);
  const std::int64_t out = vision.size_or({"out_hidden_size"}, 3584);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", patches.elements, layers.width, WeightRole::embedding);
  tower.add("position_embeddings.weight", {positions, layers.width}, WeightRole::embedding);
  tower.layers(layers);
  const std::int64_t wide = product(vision, "spatial_merge_size", patches.merged, layers.width);
  TowerWeights projector(spec, ModelPart::projector);
  add_merger(projector, "merger", NormKind::layer_norm, layers.width, wide, out, 1);
  return {wide, out};
}

}  // namespace

void count_qwen2_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const QwenPatches patches = read_patches(vision, 14);
  TowerLayers layers;
  layers.width = vision.size_or({"embed_dim"}, 1280);
  layers.inner = product(vision, "mlp_ratio", vision.size_or({"mlp_ratio"}, 4), layers.width);
  layers.count = vision.layers_or({"depth"}, 32);
  const std::int64_t out = vision.size_or({"hidden_size"}, 3584);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, patches.elements}, WeightRole::embedding);
  tower.layers(layers);
  TowerWeights projector(spec, ModelPart::projector);
  add_merger(projector, "merger", NormKind::layer_norm, layers.width,
             product(vision, "spatial_merge_size", patches.merged, layers.width), out, 1);
}

void count_qwen2_5_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const QwenPatches patches = read_patches(vision, 14);
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 3584);
  layers.inner = vision.size_or({"intermediate_size"}, 3420);
  layers.count = vision.layers_or({"depth"}, 32);
  layers.ffn = FfnKind::gated;
  layers.norm = NormKind::rms_norm;
  const std::int64_t out = vision.size_or({"out_hidden_size"}, 3584);
  // Windows of patches, and the pace of videos.
  vision.ignore({"window_size", "fullatt_block_indexes", "tokens_per_second"});
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, patches.elements}, WeightRole::embedding);
  tower.layers(layers);
  TowerWeights projector(spec, ModelPart::projector);
  add_merger(projector, "merger", NormKind::rms_norm, layers.width,
             product(vision, "spatial_merge_size", patches.merged, layers.width), out, 1);
}

void count_qwen3_vl_tower(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kMergersWhenAbsent = 3;  // after layers 8, 16 and 24
  ConfigReader vision = config.object_or_empty("vision_config");
  const bool listed = vision.has("deepstack_visual_indexes");
  const std::int64_t mergers =
      listed ? std::ssize(vision.counts("deepstack_visual_indexes")) : kMergersWhenAbsent;
  const Merged merged = count_qwen3_tower(vision, spec);
  if (mergers == 0) return;
  TowerWeights projector(spec, ModelPart::projector);
  add_merger(projector, "deepstack", NormKind::layer_norm, merged.width, merged.width, merged.out,
             mergers);
}

void count_qwen3_5_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  vision.expect_empty("deepstack_visual_indexes");
  static_cast<void>(count_qwen3_tower(vision, spec));
}

}  // namespace headroom::detail
