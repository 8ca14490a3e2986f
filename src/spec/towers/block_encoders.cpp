// Towers of GLM-4.1V, GLM-OCR, GLM-5.3 and Gemma 4, with the projectors to their text models.
#include <cmath>

#include "image_towers.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

ImageSpec read_glm_image(ConfigReader& vision) {
  ImageSpec image = read_square_image(vision, "in_channels", 336, 14);
  image.num_frames = vision.size_or({"temporal_patch_size"}, 2);
  image.block_side = vision.size_or({"spatial_merge_size"}, 2);
  image.interpolation = PositionInterpolation::bicubic;
  image.pixels = PixelLayout::patches;
  return image;
}

/// Widths of GLM's merger and its activation.
struct GlmMerger {
  std::int64_t out = 0;
  std::int64_t inner = 0;
  ActivationKind activation = ActivationKind::silu;
};

/// A convolution over blocks of patches, a linear layer with a norm, and a gated network.
void add_glm_merger(TowerSpec& tower, const GlmMerger& merger) {
  tower.projector.steps = {MergeStep{PatchMerge::channel_major, tower.embedding.image->block_side},
                           LinearStep{"downsample", merger.out, true},
                           LinearStep{"input", merger.out, false},
                           NormStep{"norm", {NormKind::layer_norm, true, 1e-5}},
                           ActivationStep{ActivationKind::gelu},
                           GatedStep{merger.inner, merger.activation},
                           LinearStep{"down", merger.out, false}};
}

/// Heads of a Gemma 4 tower: a norm of each head of Q, K and V, scores without a scale, and RoPE by
/// column and row.
AttentionSpec read_gemma4_heads(ConfigReader& vision, const TowerSpec& tower) {
  const std::int64_t heads = vision.size_or({"num_attention_heads"}, 12);
  vision.expect_number("num_key_value_heads", static_cast<double>(heads));
  AttentionSpec attention =
      multi_head_attention(vision, "num_attention_heads", heads, tower.hidden_size);
  if (vision.size_or({"head_dim"}, 64) != attention.head_dim) {
    vision.fail("head_dim", "times num_attention_heads is not hidden_size",
                "use heads that fill hidden_size");
  }
  attention.scale = AttentionScale::none;
  attention.query_key_norm = QueryKeyNormSpec{tower.stack.norm};
  attention.value_norm = tower.stack.norm;
  attention.value_norm->weight = NormWeight::none;
  return attention;
}

ImageSpec read_gemma4_image(ConfigReader& vision) {
  ImageSpec image;
  image.patch_size = vision.size_or({"patch_size"}, 16);
  image.num_channels = 3;
  image.prefix = PrefixTokens::none;
  image.interpolation = PositionInterpolation::any_size;
  image.patch_bias = false;
  image.pixels = PixelLayout::patches;
  image.range = PixelRange::unit;
  return image;
}

/// A table of columns and one of rows, and RoPE by both.
PositionSpec read_gemma4_positions(ConfigReader& vision) {
  PositionSpec position;
  position.kind = PositionKind::learned_and_rotary;
  position.table = PositionTable::rows_and_columns;
  position.max_position_embeddings = vision.size_or({"position_embedding_size"}, 10240);
  position.rope.theta = read_axial_theta(vision, 100);
  position.rope.axes = RopeAxes::columns_then_rows;
  position.rope.layout = RopeLayout::half_split_in_halves;
  return position;
}

}  // namespace

void read_glm4v_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower;
  const std::int64_t out = vision.size_or({"out_hidden_size"}, 4096);
  const std::int64_t inner = vision.size_or({"intermediate_size"}, 13696);
  tower.hidden_size = vision.size_or({"hidden_size"}, 1536);
  tower.embedding.input = InputKind::patches;
  tower.embedding.image = read_glm_image(vision);
  tower.position.kind = PositionKind::learned_and_rotary;
  tower.position.max_position_embeddings = tower.embedding.image->num_patches();
  tower.position.rope.axes = RopeAxes::rows_then_columns;
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"depth"}, 24);
  stack.self_attention = multi_head_attention(vision, "num_heads",
                                              vision.size_or({"num_heads"}, 12), tower.hidden_size);
  stack.self_attention.qkv_bias = vision.flag_or({"attention_bias"}, false);
  const ActivationKind activation = read_activation(vision, {"hidden_act"}, ActivationKind::silu);
  stack.ffn = {FfnKind::gated, out, activation, false};  // intermediate_size is the merger's
  stack.norm = {NormKind::rms_norm, false, vision.number_or({"rms_norm_eps"}, 1e-5)};
  stack.final_norm = stack.norm;
  tower.embedding.norm = stack.norm;
  tower.embedding.norm_before_positions = true;
  if (out != spec.hidden_size) {
    spec.not_run = "its visual tokens do not have the width of the text model";
  }
  add_glm_merger(tower, {out, inner, activation});
  ignore_tower_keys(vision);
  vision.finish();
  tower.rule = ImageRule::rounded;
  spec.tower = std::move(tower);
}

namespace {

constexpr std::int64_t kGlmOcrOut = 1536;

/// GLM-OCR's encoder, without a merger.
TowerSpec read_glm_ocr_encoder(ConfigReader& vision) {
  TowerSpec tower;
  tower.hidden_size = vision.size_or({"hidden_size"}, 1024);
  tower.embedding.input = InputKind::patches;
  tower.embedding.image = read_glm_image(vision);
  tower.position.kind = PositionKind::rotary;
  tower.position.rope.axes = RopeAxes::rows_then_columns;
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"depth", "num_hidden_layers"}, 24);
  stack.self_attention = multi_head_attention(vision, "num_heads",
                                              vision.size_or({"num_heads"}, 16), tower.hidden_size);
  const bool bias = vision.flag_or({"attention_bias"}, true);
  const ActivationKind activation = read_activation(vision, {"hidden_act"}, ActivationKind::silu);
  stack.self_attention.qkv_bias = bias;
  stack.self_attention.output_bias = bias;
  stack.ffn = {FfnKind::gated, vision.size_or({"intermediate_size"}, 4096), activation, bias};
  stack.norm = {NormKind::rms_norm, false, vision.number_or({"rms_norm_eps"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  tower.rule = ImageRule::rounded;
  ignore_tower_keys(vision);
  return tower;
}

/// Adds the merger, and checks its width.
void finish_glm_ocr_tower(ConfigReader& vision, ModelSpec& spec, TowerSpec tower,
                          const GlmMerger& merger) {
  if (merger.out != spec.hidden_size) {
    spec.not_run = "its visual tokens do not have the width of the text model";
  }
  add_glm_merger(tower, merger);
  vision.finish();
  spec.tower = std::move(tower);
}

}  // namespace

void read_glm_ocr_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_glm_ocr_encoder(vision);
  const std::int64_t out = vision.size_or({"out_hidden_size"}, kGlmOcrOut);
  const ActivationKind activation = tower.stack.ffn.activation;
  // The class's width of the merger: that of the text model for each colour.
  const std::int64_t inner =
      product(vision, "out_hidden_size", tower.embedding.image->num_channels, out);
  use_class_sections(spec, {8, 12, 12});
  finish_glm_ocr_tower(vision, spec, std::move(tower), {out, inner, activation});
}

void read_glm5_next_tower(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kFewestTokens = 16;  // min_image_tokens of its preprocessor
  constexpr std::int64_t kMostTokens = 8000;  // max_image_tokens
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_glm_ocr_encoder(vision);
  if (tower.stack.ffn.activation != ActivationKind::silu) {
    vision.fail("hidden_act", "is not silu, and only SiLU is clamped", "use silu");
  }
  vision.expect_number("swiglu_limit", 10);
  tower.stack.ffn.activation = ActivationKind::clamped_silu;
  const ImageSpec& image = *tower.embedding.image;
  const std::int64_t side = product(vision, "patch_size", image.patch_size, image.block_side);
  const std::int64_t pixels = product(vision, "patch_size", side, side);
  tower.rule = ImageRule::completed;
  tower.pixel_limits = PixelLimits{product(vision, "patch_size", kFewestTokens, pixels),
                                   product(vision, "patch_size", kMostTokens, pixels)};
  const std::int64_t out = vision.size_or({"out_hidden_size"}, kGlmOcrOut);
  const std::int64_t inner = vision.size_or({"projection_intermediate_size"}, 10240);
  finish_glm_ocr_tower(vision, spec, std::move(tower), {out, inner, ActivationKind::clamped_silu});
}

void read_gemma4_tower(ConfigReader& config, ModelSpec& spec) {
  read_gemma4_audio(config, spec);
  spec.embedding.placeholder_id = 0;  // padding
  config.ignore({"vision_soft_tokens_per_image"});
  std::optional<ConfigReader> present = config.object("vision_config");
  if (!present) return;  // the class builds no tower either
  ConfigReader& vision = *present;
  TowerSpec tower;
  tower.hidden_size = vision.size_or({"hidden_size"}, 768);
  tower.embedding.input = InputKind::patches;
  tower.embedding.image = read_gemma4_image(vision);
  tower.position = read_gemma4_positions(vision);
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"num_hidden_layers"}, 16);
  stack.norm = {NormKind::rms_norm, false, vision.number_or({"rms_norm_eps"}, 1e-6)};
  stack.norm_placement = NormPlacement::sandwich;
  stack.self_attention = read_gemma4_heads(vision, tower);
  stack.ffn = {FfnKind::gated, vision.size_or({"intermediate_size"}, 3072),
               read_activation(vision, {"hidden_activation"}, ActivationKind::gelu_tanh), false};
  vision.expect_flag("attention_bias", false);
  const NormSpec norm{NormKind::rms_norm, false, stack.norm.eps, NormWeight::none};
  tower.projector.steps = {MergeStep{PatchMerge::mean, vision.size_or({"pooling_kernel_size"}, 3)},
                           FactorStep{std::sqrt(static_cast<double>(tower.hidden_size))},
                           NormStep{"norm", norm}, LinearStep{"linear", spec.hidden_size, false}};
  if (vision.flag_or({"standardize"}, false)) {
    tower.projector.steps.insert(tower.projector.steps.begin() + 2, StandardiseStep{});
  }
  // These layers have buffers only.
  if (vision.flag_or({"use_clipped_linears"}, false)) spec.not_run = "its tower clips its layers";
  vision.ignore({"default_output_length", "global_head_dim", "video_seq_length"});
  ignore_tower_keys(vision);
  read_common_keys(vision, spec);
  vision.finish();
  tower.rule = ImageRule::rounded;
  spec.tower = std::move(tower);
}

}  // namespace headroom::detail
