// Towers whose projector reads blocks of patches side by side (pixel shuffle): LFM2-VL, Command A
// Vision, Aya Vision, and InternVL as OpenGVLab publishes it.
#include "encoder_specs.h"
#include "image_towers.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// The width of a network whose gate and up projection are the halves of one layer of `key`.
std::int64_t half_width(ConfigReader& config, std::string_view key, std::int64_t absent) {
  const std::int64_t width = config.size_or({key}, absent);
  if (width % 2 == 0) return width / 2;
  config.fail(key, "is odd, but its halves are the gate and its operand", "use an even width");
}

/// A gated network to the text model's width.
void add_gated_network(ConfigReader& config, const ModelSpec& spec, std::int64_t absent_width,
                       TowerSpec& tower) {
  const std::int64_t width = half_width(config, "alignment_intermediate_size", absent_width);
  tower.projector.steps.emplace_back(GatedStep{width, ActivationKind::silu, true});
  tower.projector.steps.emplace_back(LinearStep{"down", spec.hidden_size, true});
}

/// These classes do not scale their logits as Cohere's text models do.
void leave_logits(ModelSpec& spec) {
  if (spec.head.language_model) spec.head.language_model->logit_scale = 1;
}

/// The last layer's patches, and a block of them side by side.
void add_merge(ConfigReader& config, TowerSpec& tower) {
  tower.projector.rows = FeatureRows::patches;
  tower.projector.steps = {
      MergeStep{PatchMerge::patch_major, config.size_or({"downsample_factor"}, 2)}};
}

}  // namespace

void read_lfm2_vl_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_named_encoder(config, spec, read_siglip2);
  add_merge(config, tower);
  const std::int64_t inner = config.size_or({"projector_hidden_size"}, 2560);
  const bool bias = config.flag_or({"projector_bias"}, true);
  std::vector<ProjectorStep>& steps = tower.projector.steps;
  if (config.flag_or({"projector_use_layernorm"}, true)) {
    steps.emplace_back(NormStep{"norm", {NormKind::layer_norm, true, 1e-5}});
  }
  steps.emplace_back(LinearStep{"up", inner, bias});
  steps.emplace_back(
      ActivationStep{read_activation(config, {"projector_hidden_act"}, ActivationKind::gelu)});
  steps.emplace_back(LinearStep{"down", spec.hidden_size, bias});
  // The preprocessor's limits, in visual tokens, which the first published files repeat.
  const std::int64_t side = product(config, "downsample_factor", tower.embedding.image->patch_size,
                                    std::get<MergeStep>(steps.front()).side);
  const std::int64_t block = product(config, "downsample_factor", side, side);
  const std::int64_t least = config.size_or({"min_image_tokens"}, 64);
  const std::int64_t most = config.size_or({"max_image_tokens"}, 256);
  tower.rule = ImageRule::rounded_or_tiles;
  tower.pixel_limits = PixelLimits{product(config, "min_image_tokens", least, block),
                                   product(config, "max_image_tokens", most, block)};
  config.expect_number("vision_feature_layer", -1);
  config.expect_flag("do_image_splitting", true);
  config.expect_number("min_tiles", 2);
  config.expect_number("max_tiles", 10);
  config.expect_number("tile_size", 512);
  config.expect_number("max_pixels_tolerance", 2);
  config.ignore({"encoder_patch_size", "max_num_patches", "tie_embedding",
                 "use_image_special_tokens", "use_thumbnail"});
  spec.tower = std::move(tower);
}

void read_cohere2_vision_tower(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kAlignmentWidth = 36864;
  constexpr std::int64_t kMostTiles = 12;  // max_patches of transformers' processor
  TowerSpec tower = read_named_encoder(config, spec, read_siglip);
  add_merge(config, tower);
  add_gated_network(config, spec, kAlignmentWidth, tower);
  tower.rule = ImageRule::tiles_of_best_fit;
  tower.most_tiles = kMostTiles;
  leave_logits(spec);
  spec.tower = std::move(tower);
}

void read_aya_vision_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_named_encoder(config, spec, read_siglip);
  read_feature_layers(config, tower, -1);
  config.expect_text("vision_feature_select_strategy", "full");
  add_merge(config, tower);
  const double eps = config.number_or({"adapter_layer_norm_eps"}, 1e-6);
  tower.projector.steps.emplace_back(NormStep{"norm", {NormKind::layer_norm, true, eps}});
  add_gated_network(config, spec, spec.hidden_size, tower);
  tower.rule = ImageRule::tiles_by_aspect;
  config.ignore({"max_splits_per_img"});
  leave_logits(spec);
  spec.tower = std::move(tower);
}

void read_internvl_chat_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_only_encoder(config, spec, read_intern_vit);
  constexpr std::int64_t kLast = -1;
  const std::vector<std::int64_t> wanted = config.integers_or("select_layer", kLast);
  if (wanted != std::vector{kLast}) {
    config.fail("select_layer", "is not the last layer", "use -1, as published files have it");
  }
  const std::int64_t side = read_merged_side(config, "downsample_ratio");
  tower.projector.rows = FeatureRows::patches;
  tower.projector.steps = {MergeStep{PatchMerge::patch_major, side},
                           NormStep{"norm", {NormKind::layer_norm, true, 1e-5}},
                           LinearStep{"up", spec.hidden_size, true},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, true}};
  // Its code interpolates positions for an image of another size than the tower's.
  const std::int64_t image_size = tower.embedding.image->image_size;
  config.expect_number("force_image_size", static_cast<double>(image_size));
  if (!config.has("ps_version") || config.is_text("ps_version", "v1")) {
    spec.not_run = "its pixel shuffle transposes the image (ps_version v1)";
  }
  config.expect_text("ps_version", config.is_text("ps_version", "v1") ? "v1" : "v2");
  const bool tiles = config.flag_or({"dynamic_image_size"}, false);
  tower.most_tiles = config.size_or({"max_dynamic_patch"}, 6);
  tower.rule = tiles ? ImageRule::tiles_by_aspect : ImageRule::resized;
  config.expect_number("min_dynamic_patch", 1);
  config.expect_flag("use_thumbnail", true);
  config.expect_number("use_backbone_lora", 0);
  config.expect_number("use_llm_lora", 0);
  config.ignore({"hidden_size", "image_fold", "pad2square", "template", "system_message"});
  spec.tower = std::move(tower);
}

}  // namespace headroom::detail
