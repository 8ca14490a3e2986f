// Towers that merge patches with layers of their own, and are counted: MiniCPM-V 4.6, HunyuanOCR
// and Hunyuan V4.
#include <string>

#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kOfPatches = WeightRole::embedding;
constexpr auto kOfMerger = WeightRole::projector;
constexpr std::int64_t kMerged = 4;  // patches, two by two

/// Side of the windows that the config merges; only two by two is known.
void expect_two_by_two(ConfigReader& config, std::string_view key) {
  const auto sides = config.sides_or(key, 2);
  if (sides[0] == 2 && sides[1] == 2) return;
  config.fail(key, "does not merge two by two patches", "write [2, 2]");
}

/// Attention within windows of patches, and a network that merges them, between two layers.
void add_window_merger(TowerWeights& tower, ConfigReader& vision, const TowerLayers& layers) {
  for (const char* const name : {"query", "key", "value", "output"}) {
    tower.linear(std::string("window.attention.") + name, layers.width, layers.width,
                 WeightRole::attention);
  }
  const std::int64_t merged = product(vision, "hidden_size", kMerged, layers.width);
  const std::int64_t inner = product(vision, "intermediate_size", kMerged, layers.inner);
  tower.norm(NormKind::layer_norm, "window.norm", layers.width);
  tower.norm(NormKind::layer_norm, "window.merged_norm", merged);
  tower.linear("window.up", merged, inner, WeightRole::mlp);
  tower.linear("window.down", inner, layers.width, WeightRole::mlp);
}

/// A norm and a network of two layers on every four merged patches.
void add_merger(TowerWeights& projector, const std::string& name, std::int64_t merged,
                std::int64_t out) {
  projector.norm(NormKind::layer_norm, name + ".norm", merged);
  projector.linear(name + ".up", merged, merged, kOfMerger);
  projector.linear(name + ".down", merged, out, kOfMerger);
}

}  // namespace

void count_minicpmv4_6_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 768);
  layers.inner = vision.size_or({"intermediate_size"}, 3072);
  layers.count = vision.layers_or({"num_hidden_layers"}, 12);
  config.ignore({"drop_vision_last_layer"});  // the class has all layers
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 16);
  expect_two_by_two(vision, "window_kernel_size");
  expect_two_by_two(config, "merge_kernel_size");
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kOfPatches);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, kOfPatches);
  tower.layers(layers);
  add_window_merger(tower, vision, layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  const std::int64_t merged = product(vision, "hidden_size", kMerged, layers.width);
  const std::int64_t times = config.size_or({"merger_times"}, 1);
  constexpr std::int64_t kMostTimes = 32;  // each quarters the patches
  if (times > kMostTimes) {
    config.fail("merger_times", "is more than 32", "write how often the patches are merged");
  }
  TowerWeights projector(spec, ModelPart::projector);
  for (std::int64_t time = 1; time < times; ++time) {
    add_merger(projector, "mergers." + std::to_string(time), merged, layers.width);
  }
  add_merger(projector, "merger", merged, spec.hidden_size);
  // A file's mode of 4 leaves out the merger within windows, which it stores all the same.
  config.ignore({"insert_layer_id", "image_size", "patch_size", "downsample_mode"});
  vision.ignore({"insert_layer_id"});
  ignore_tower_keys(vision);
  vision.finish();
}

namespace {

/// Reads a tower of Hunyuan's, counted with a place for every patch of the largest image and one
/// more; the width of its rows.
TowerLayers count_hunyuan_layers(ConfigReader& vision, ModelSpec& spec, const TowerLayers& absent) {
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, absent.width);
  layers.inner = vision.size_or({"intermediate_size"}, absent.inner);
  layers.count = vision.layers_or({"num_hidden_layers"}, absent.count);
  const std::int64_t patch = vision.size_or({"patch_size"}, 16);
  const std::int64_t channels = vision.size_or({"num_channels"}, 3);
  const std::int64_t edge = vision.size_or({"max_image_size"}, 2048) / patch;
  const std::int64_t elements =
      product(vision, "patch_size", channels, product(vision, "patch_size", patch, patch));
  const std::int64_t places = product(vision, "max_image_size", edge, edge);
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", elements, layers.width, kOfPatches);
  tower.add("position_embeddings.weight", {vision.sum("max_image_size", places, 1), layers.width},
            kOfPatches);
  tower.layers(layers);
  vision.expect_flag("add_patchemb_bias", true);
  vision.ignore({"interpolate_mode", "out_hidden_size", "text_hidden_size", "temporal_patch_size",
                 "img_max_token_num", "min_image_size", "max_vit_seq_len", "attention_heads",
                 "cat_extra_token"});
  ignore_tower_keys(vision);
  return layers;
}

/// A norm of the patches, and a convolution that merges them to `out` channels.
void add_convolved_merger(TowerWeights& projector, ConfigReader& vision, std::int64_t width,
                          std::int64_t out) {
  const std::int64_t merged = vision.size_or({"spatial_merge_size"}, 2);
  projector.norm(NormKind::rms_norm, "first_norm", width);
  projector.add("merger.weight", {out, width, merged, merged}, WeightRole::convolution);
  projector.add("merger.bias", {out}, WeightRole::convolution);
}

}  // namespace

void count_hunyuan_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t width =
      count_hunyuan_layers(vision, spec, {.count = 27, .width = 1152, .inner = 4304}).width;
  const auto multiple = [&](std::int64_t factor) {
    return product(vision, "hidden_size", factor, width);
  };
  TowerWeights projector(spec, ModelPart::projector);
  add_convolved_merger(projector, vision, width, multiple(2));
  projector.linear("up", multiple(2), multiple(4), kOfMerger);
  projector.linear("out", multiple(4), spec.hidden_size, kOfMerger);
  projector.norm(NormKind::rms_norm, "last_norm", spec.hidden_size);
  projector.add("end_of_row", {multiple(4)}, kOfMerger);
  for (const char* const name : {"begin", "end", "separator"}) {
    projector.add(name, {spec.hidden_size}, kOfMerger);
  }
  vision.finish();
  config.ignore({"im_start_id", "im_end_id", "im_newline_id"});
}

void count_hunyuan_v4_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t width =
      count_hunyuan_layers(vision, spec, {.count = 40, .width = 1536, .inner = 6144}).width;
  if (vision.size_or({"out_hidden_size"}, 6144) != spec.hidden_size) {
    vision.fail("out_hidden_size", "is not the width of the text model", "write its hidden_size");
  }
  const std::int64_t merged = product(vision, "hidden_size", kMerged, width);
  if (vision.size_or({"spatial_merge_size"}, 2) != 2) {
    vision.fail("spatial_merge_size", "does not merge two by two patches", "write 2");
  }
  TowerWeights projector(spec, ModelPart::projector);
  add_convolved_merger(projector, vision, width, merged);
  projector.linear("out", merged, spec.hidden_size, kOfMerger);
  projector.add("end_of_row", {spec.hidden_size}, kOfMerger);
  vision.finish();
}

}  // namespace headroom::detail
