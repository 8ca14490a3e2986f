#include "encoder_specs.h"

namespace headroom::detail {
namespace {

/// Sizes that a vision_config may omit: those of its class.
struct ClassSizes {
  std::int64_t width = 768;
  std::int64_t inner = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 16;
  double norm_eps = 1e-6;
  ActivationKind activation = ActivationKind::gelu_tanh;
};

/// A pre-norm encoder with biases and learned positions, without prefix tokens.
TowerSpec read_encoder(ConfigReader& vision, const ClassSizes& absent) {
  TowerSpec tower;
  tower.hidden_size = vision.size_or({"hidden_size"}, absent.width);
  tower.embedding.input = InputKind::patches;
  tower.embedding.image =
      read_square_image(vision, "num_channels", absent.image_size, absent.patch_size);
  tower.position.kind = PositionKind::learned;
  tower.position.max_position_embeddings = tower.embedding.image->num_tokens();
  // PaliGemma 2's is its text size's whatever its image, CLIP's counts its class token.
  vision.ignore({"num_positions"});
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"num_hidden_layers"}, absent.layers);
  stack.self_attention = multi_head_attention(vision, "num_attention_heads",
                                              vision.size_or({"num_attention_heads"}, absent.heads),
                                              tower.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.ffn = {FfnKind::plain, vision.size_or({"intermediate_size"}, absent.inner),
               read_activation(vision, {"hidden_act"}, absent.activation), true};
  stack.norm = {NormKind::layer_norm, true, vision.number_or({"layer_norm_eps"}, absent.norm_eps)};
  stack.dropout.attention_probs = vision.probability_or({"attention_dropout"}, 0);
  ignore_tower_keys(vision);
  return tower;
}

void add_class_token(TowerSpec& tower) {
  tower.embedding.image->prefix = PrefixTokens::class_token;
  tower.position.max_position_embeddings = tower.embedding.image->num_tokens();
}

TowerSpec read_siglip_encoder(ConfigReader& vision) {
  TowerSpec tower = read_encoder(vision, {});
  tower.stack.final_norm = tower.stack.norm;
  return tower;
}

TowerSpec read_clip_encoder(ConfigReader& vision) {
  ClassSizes absent;
  absent.patch_size = 32;
  absent.norm_eps = 1e-5;
  absent.activation = ActivationKind::quick_gelu;
  TowerSpec tower = read_encoder(vision, absent);
  vision.ignore({"initializer_factor"});
  add_class_token(tower);
  tower.embedding.image->patch_bias = false;
  tower.embedding.norm = tower.stack.norm;
  return tower;
}

/// Images of any shape, cut into patches, and a table of positions that is resized to each.
void read_any_shape(ConfigReader& vision, TowerSpec& tower) {
  ImageSpec& image = *tower.embedding.image;
  const std::int64_t positions = vision.size_or({"num_patches"}, 256);
  image.image_size = product(vision, "num_patches", square_side(vision, "num_patches", positions),
                             image.patch_size);
  image.pixels = PixelLayout::patches;
  image.interpolation = PositionInterpolation::linear_antialiased;
  tower.position.max_position_embeddings = positions;
}

}  // namespace

TowerSpec read_pooled_siglip(ConfigReader& vision) {
  TowerSpec tower = read_siglip_encoder(vision);
  vision.expect_flag("vision_use_head", true);
  const StackSpec& stack = tower.stack;
  tower.pooling = ProbePooling{stack.self_attention, stack.ffn, stack.norm};
  return tower;
}

TowerSpec read_pooled_siglip2(ConfigReader& vision) {
  TowerSpec tower = read_pooled_siglip(vision);
  read_any_shape(vision, tower);
  tower.rule = ImageRule::most_patches;
  return tower;
}

TowerSpec read_pooled_clip(ConfigReader& vision) {
  TowerSpec tower = read_clip_encoder(vision);
  tower.pooling = ClassTokenPooling{tower.stack.norm};
  return tower;
}

TowerSpec read_siglip(ConfigReader& vision, ModelSpec& spec) {
  TowerSpec tower = read_siglip_encoder(vision);
  if (vision.flag_or({"vision_use_head"}, true)) {
    add_pooling_head(spec, tower.hidden_size, tower.stack.ffn.intermediate_size);
  }
  return tower;
}

TowerSpec read_phi4_vision(ConfigReader& vision, ModelSpec& spec) {
  const ClassSizes absent{1152, 4304, 27, 16, 448, 14, 1e-6, ActivationKind::gelu_tanh};
  TowerSpec tower = read_encoder(vision, absent);
  tower.stack.final_norm = tower.stack.norm;
  add_pooling_head(spec, tower.hidden_size, tower.stack.ffn.intermediate_size);
  return tower;
}

TowerSpec read_siglip2(ConfigReader& vision, ModelSpec& spec) {
  TowerSpec tower = read_siglip(vision, spec);
  read_any_shape(vision, tower);
  return tower;
}

TowerSpec read_clip(ConfigReader& vision, ModelSpec& spec) {
  TowerSpec tower = read_clip_encoder(vision);
  TowerWeights unread(spec, ModelPart::vision, CountedUse::loaded);
  unread.norm(NormKind::layer_norm, "encoder.final_norm", tower.hidden_size);
  return tower;
}

TowerSpec read_pixtral(ConfigReader& vision, ModelSpec& spec) {
  constexpr double kEps = 1e-5;  // of the class, whatever the config says
  ClassSizes absent{1024, 4096, 24, 16, 1024, 16, kEps, ActivationKind::gelu};
  const double theta = read_axial_theta(vision, 10000);
  TowerSpec tower = read_encoder(vision, absent);
  tower.embedding.image->patch_bias = false;
  tower.embedding.image->interpolation = PositionInterpolation::any_size;
  tower.position = {};
  tower.position.kind = PositionKind::rotary;
  tower.position.rope.theta = theta;
  tower.position.rope.axes = RopeAxes::rows_and_columns_alternate;
  tower.stack.self_attention.qkv_bias = false;
  tower.stack.self_attention.output_bias = false;
  tower.stack.ffn.kind = FfnKind::gated;
  tower.stack.ffn.bias = false;
  tower.stack.norm = {NormKind::rms_norm, false, kEps};
  tower.embedding.norm = tower.stack.norm;
  static_cast<void>(spec);
  return tower;
}

TowerSpec read_idefics3_vision(ConfigReader& vision, ModelSpec& /*spec*/) {
  ClassSizes absent;
  absent.width = 1152;
  absent.heads = 16;
  absent.patch_size = 32;
  TowerSpec tower = read_encoder(vision, absent);
  tower.stack.final_norm = tower.stack.norm;
  // Pre-processing of SmolVLM's images and videos.
  vision.ignore({"size", "max_image_size", "tie_word_embeddings", "use_base_siglip"});
  return tower;
}

TowerSpec read_blip2_vision(ConfigReader& vision) {
  const ClassSizes absent{1408, 6144, 39, 16, 224, 14, 1e-6, ActivationKind::gelu};
  const bool qkv_bias = vision.flag_or({"qkv_bias"}, true);
  TowerSpec tower = read_encoder(vision, absent);
  add_class_token(tower);
  tower.stack.self_attention.qkv_bias = qkv_bias;
  tower.stack.final_norm = tower.stack.norm;
  return tower;
}

TowerSpec read_internvl_vision(ConfigReader& vision, ModelSpec& /*spec*/) {
  const ClassSizes absent{1024, 4096, 24, 16, 448, 14, 1e-6, ActivationKind::gelu};
  const NormKind kind = vision.choice_or<NormKind>(
      {"norm_type"}, {{"layer_norm", NormKind::layer_norm}, {"rms_norm", NormKind::rms_norm}},
      NormKind::layer_norm);
  const bool qkv_bias = vision.flag_or({"attention_bias"}, false);
  const bool query_key_norm = vision.flag_or({"use_qk_norm"}, false);
  const bool positions = vision.flag_or({"use_absolute_position_embeddings"}, true);
  const bool final_norm = !vision.flag_or({"use_mean_pooling"}, true);
  vision.expect_flag("use_mask_token", false);
  vision.ignore({"layer_scale_init_value"});
  TowerSpec tower = read_encoder(vision, absent);
  add_class_token(tower);
  tower.embedding.image->interpolation = PositionInterpolation::bicubic;
  if (!positions) tower.position = {};
  StackSpec& stack = tower.stack;
  stack.norm.kind = kind;
  stack.norm.bias = kind == NormKind::layer_norm;
  stack.layer_scale = true;
  stack.self_attention.qkv_bias = qkv_bias;
  if (query_key_norm) {
    stack.self_attention.query_key_norm =
        QueryKeyNormSpec{{NormKind::rms_norm, false, 1e-6}, QueryKeyNormScope::all_heads};
  }
  if (final_norm) {
    stack.final_norm = NormSpec{NormKind::layer_norm, true, stack.norm.eps};
  }
  return tower;
}

TowerSpec read_intern_vit(ConfigReader& vision, ModelSpec& spec) {
  const ClassSizes absent{3200, 12800, 48, 25, 224, 14, 1e-6, ActivationKind::gelu};
  const NormKind kind = vision.choice_or<NormKind>(
      {"norm_type"}, {{"layer_norm", NormKind::layer_norm}, {"rms_norm", NormKind::rms_norm}},
      NormKind::rms_norm);
  const bool qkv_bias = vision.flag_or({"qkv_bias"}, false);
  const bool query_key_norm = vision.flag_or({"qk_normalization"}, true);
  vision.expect_flag("use_moe", false);
  // Experts that use_moe would add, and training.
  vision.ignore({"capacity_factor", "drop_path_rate", "dropout", "eval_capacity_factor",
                 "initializer_factor", "laux_allreduce", "moe_coeff_ratio", "moe_intermediate_size",
                 "moe_output_scale", "noisy_gate_policy", "num_experts", "num_routed_experts",
                 "num_shared_experts", "shared_expert_intermediate_size", "use_bfloat16",
                 "use_flash_attn", "use_residual", "use_rts", "use_weighted_residual"});
  TowerSpec tower = read_encoder(vision, absent);
  add_class_token(tower);
  tower.embedding.image->interpolation = PositionInterpolation::bicubic;
  StackSpec& stack = tower.stack;
  stack.norm.kind = kind;
  stack.norm.bias = kind == NormKind::layer_norm;
  stack.layer_scale = true;
  stack.self_attention.qkv_bias = qkv_bias;
  if (query_key_norm) {
    stack.self_attention.query_key_norm =
        QueryKeyNormSpec{{NormKind::rms_norm, false, stack.norm.eps}, QueryKeyNormScope::all_heads};
  }
  static_cast<void>(spec);
  return tower;
}

}  // namespace headroom::detail
