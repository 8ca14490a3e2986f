// Towers of models that read documents, which are counted: GOT-OCR 2 (arXiv 2409.01704), and those
// of ERNIE 4.5 VL and Idefics2 (arXiv 2405.02246).
#include <algorithm>

#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kTableRole = WeightRole::embedding;
constexpr auto kToText = WeightRole::projector;

std::int64_t area_of(const ConfigReader& config, std::string_view key, std::int64_t side) {
  return product(config, key, side, side);
}

/// SigLIP's tower: patches with trained positions, layers, a norm.
void count_patch_tower(const TowerLayers& layers, const PatchGrid& grid, ModelSpec& spec) {
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kTableRole);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, kTableRole);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
}

/// Numbers of layers that attend to the whole image; the others attend within windows.
std::int64_t read_whole_image_layers(ConfigReader& vision, std::int64_t layers) {
  const std::vector<std::int64_t> listed = vision.list_of_counts("global_attn_indexes");
  if (listed.empty()) return std::min<std::int64_t>(4, layers);  // 2, 5, 8 and 11
  return std::ranges::count_if(listed, [&](std::int64_t layer) { return layer < layers; });
}

/// Relative positions along both sides of an image, or of a window, in every layer (arXiv
/// 2304.02643: the encoder of Segment Anything).
void count_relative_positions(ConfigReader& vision, const TowerLayers& layers, std::int64_t side,
                              TowerWeights& tower) {
  const std::int64_t heads = vision.size_or({"num_attention_heads"}, 12);
  const std::int64_t window = vision.size_or({"window_size"}, 14);
  const std::int64_t whole = read_whole_image_layers(vision, layers.count);
  const std::int64_t head_dim = layers.width / heads;
  const auto add = [&](const std::string& name, std::int64_t size, std::int64_t count) {
    if (count == 0) return;
    tower.add("layers.attention." + name, {2, 2 * size - 1, head_dim},
              WeightRole::relative_position_bias, count);
  };
  add("relative_positions", side, whole);
  add("relative_positions_of_windows", window, layers.count - whole);
}

}  // namespace

void count_got_ocr2_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 768);
  layers.inner = vision.size_or({"mlp_dim"}, 3072);
  layers.count = vision.layers_or({"num_hidden_layers"}, 12);
  layers.qkv_bias = vision.flag_or({"qkv_bias"}, true);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 1024, 16);
  const std::int64_t side =
      vision.sides_or("image_size", 1024)[0] / vision.sides_or("patch_size", 16)[0];
  const std::int64_t channels = vision.size_or({"output_channels"}, 256);
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kTableRole);
  if (vision.flag_or({"use_abs_pos"}, true)) {
    tower.add("position_embeddings.weight", {grid.patches, layers.width}, kTableRole);
  }
  tower.layers(layers);
  if (vision.flag_or({"use_rel_pos"}, true)) {
    count_relative_positions(vision, layers, side, tower);
  } else {
    vision.ignore({"window_size", "global_attn_indexes"});
  }
  constexpr std::int64_t kKernel = 3;
  const std::int64_t kernel = area_of(vision, "output_channels", kKernel);
  tower.add("neck.first.weight", {channels, layers.width}, WeightRole::convolution);
  tower.norm(NormKind::layer_norm, "neck.first_norm", channels);
  tower.add("neck.second.weight", {channels, channels, kernel}, WeightRole::convolution);
  tower.norm(NormKind::layer_norm, "neck.second_norm", channels);
  ignore_tower_keys(vision);
  vision.ignore({"intermediate_size"});
  vision.finish();
  const std::int64_t twice = product(config, "output_channels", 2, channels);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("first.weight", {twice, channels, kernel}, kToText);
  projector.add("second.weight", {spec.hidden_size, twice, kernel}, kToText);
  projector.linear("linear", spec.hidden_size, spec.hidden_size, kToText);
  config.ignore({"image_seq_length"});
}

namespace {

/// Patches of an image's side, and frames, that become one token.
struct ErnieMerger {
  std::int64_t side = 2;
  std::int64_t frames = 2;
};

/// The encoder. Returns its width.
std::int64_t count_ernie_encoder(ConfigReader& vision, ModelSpec& spec) {
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size", "embed_dim"}, 1280);
  const std::int64_t ratio = vision.size_or({"mlp_ratio"}, 4);
  layers.inner =
      vision.size_or({"intermediate_size"}, product(vision, "mlp_ratio", ratio, layers.width));
  layers.count = vision.layers_or({"depth", "num_hidden_layers"}, 32);
  const std::int64_t channels = vision.size_or({"in_channels", "in_chans"}, 3);
  const std::int64_t patch =
      area_of(vision, "patch_size", vision.size_or({"patch_size", "spatial_patch_size"}, 14));
  vision.ignore({"attn_implementation", "attn_sep", "pixel_hidden_size", "recompute",
                 "use_recompute", "tensor_parallel_degree", "tensor_model_parallel_size",
                 "pp_data_balance", "vit_first_fwd_bsz", "vit_num_recompute_layers"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight",
            {layers.width, product(vision, "patch_size", channels, patch)}, kTableRole);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  return layers.width;
}

/// Mergers of patches and of frames, and a linear layer to the text model.
void count_ernie_mergers(ConfigReader& config, const ErnieMerger& merger, std::int64_t width,
                         ModelSpec& spec) {
  TowerWeights projector(spec, ModelPart::projector);
  const std::int64_t merged = area_of(config, "spatial_merge_size", merger.side);
  const std::int64_t wide = product(config, "spatial_merge_size", merged, width);
  for (const bool in_time : {false, true}) {
    const std::string name = in_time ? "frames." : "patches.";
    const std::int64_t in =
        in_time ? product(config, "temporal_merge_size", merger.frames, wide) : wide;
    projector.linear(name + "up", in, wide, kToText);
    projector.linear(name + "down", wide, wide, kToText);
    projector.norm(NormKind::layer_norm, name + "norm", wide);
  }
  projector.linear("linear", wide, spec.hidden_size, kToText);
  projector.norm(NormKind::rms_norm, "norm", spec.hidden_size);
}

}  // namespace

void count_ernie4_5_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const ErnieMerger merger{vision.size_or({"spatial_merge_size"}, 2),
                           vision.size_or({"temporal_merge_size"}, 2)};
  const std::int64_t width = count_ernie_encoder(vision, spec);
  count_ernie_mergers(config, merger, width, spec);
}

void count_ernie4_5_moe_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const ErnieMerger merger{config.size_or({"spatial_conv_size"}, 2),
                           config.size_or({"temporal_conv_size"}, 2)};
  vision.expect_number("spatial_merge_size", static_cast<double>(merger.side));
  const std::int64_t width = count_ernie_encoder(vision, spec);
  config.expect_number("pixel_hidden_size", static_cast<double>(width));
  config.expect_flag("use_temporal_conv", true);
  count_ernie_mergers(config, merger, width, spec);
}

void count_idefics2_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 768);
  layers.inner = vision.size_or({"intermediate_size"}, 3072);
  layers.count = vision.layers_or({"num_hidden_layers"}, 12);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 32);
  ignore_tower_keys(vision);
  read_common_keys(vision, spec);
  vision.finish();
  count_patch_tower(layers, grid, spec);

  // Trained latents attend to the patches, which an MLP brings to the text model's width.
  ConfigReader resampler = config.object_or_empty("perceiver_config");
  const std::int64_t width = spec.hidden_size;  // whatever hidden_size says here
  resampler.ignore({"hidden_size"});
  const std::int64_t depth = resampler.layers_or({"resampler_depth"}, 3);
  const std::int64_t head_dim = resampler.size_or({"resampler_head_dim"}, 96);
  const std::int64_t heads = resampler.size_or({"resampler_n_heads"}, 16);
  const std::int64_t groups = resampler.size_or({"num_key_value_heads"}, 4);
  const std::int64_t query = product(resampler, "resampler_head_dim", head_dim, heads);
  const std::int64_t key = product(resampler, "resampler_head_dim", head_dim, groups);
  const std::int64_t inner = product(resampler, "hidden_size", 4, width);
  TowerWeights projector(spec, ModelPart::projector);
  const std::int64_t text_inner = spec.decoder->ffn.intermediate_size;
  projector.add("gate_up.weight", {2, text_inner, layers.width}, kToText);
  projector.linear_if(false, "down", text_inner, spec.hidden_size, kToText);
  projector.add("latents", {resampler.size_or({"resampler_n_latents"}, 64), width}, kToText);
  projector.linear_if(false, "layers.attention.query", width, query, kToText, depth);
  projector.add("layers.attention.key_value.weight", {2, key, width}, kToText, depth);
  projector.linear_if(false, "layers.attention.output", query, width, kToText, depth);
  projector.add("layers.mlp.gate_up.weight", {2, inner, width}, kToText, depth);
  projector.linear_if(false, "layers.mlp.down", inner, width, kToText, depth);
  constexpr std::int64_t kNorms = 3;  // of latents, patches and the network's input
  projector.norm(NormKind::rms_norm, "layers.norms", width, kNorms * depth);
  projector.norm(NormKind::rms_norm, "final_norm", width);
  ignore_tower_keys(resampler);
  read_common_keys(resampler, spec);
  resampler.finish();
}

}  // namespace headroom::detail
