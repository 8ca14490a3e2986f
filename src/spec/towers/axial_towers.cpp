// Towers like CLIP's and SigLIP's with RoPE by row and column: PaddleOCR-VL (arXiv 2510.14528),
// VideoLLaMA 3 (arXiv 2501.13106), MiniMax M3.
#include <numeric>

#include "image_towers.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// Sizes that a vision_config may omit: those of its class.
struct AxialDefaults {
  std::int64_t width = 768;
  std::int64_t inner = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t patch_size = 16;
  ActivationKind activation = ActivationKind::gelu_tanh;
  double norm_eps = 1e-6;
};

/// A pre-norm encoder with biases and 2-D RoPE, whose patches the preprocessor cuts.
TowerSpec read_axial_encoder(ConfigReader& vision, const AxialDefaults& absent) {
  TowerSpec tower;
  tower.hidden_size = vision.size_or({"hidden_size"}, absent.width);
  tower.embedding.input = InputKind::patches;
  ImageSpec image;
  image.patch_size = vision.size_or({"patch_size"}, absent.patch_size);
  image.num_channels = vision.size_or({"num_channels"}, 3);
  image.prefix = PrefixTokens::none;
  image.interpolation = PositionInterpolation::any_size;
  image.pixels = PixelLayout::patches;
  tower.embedding.image = image;
  tower.position.kind = PositionKind::rotary;
  tower.position.rope.axes = RopeAxes::rows_then_columns;
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  tower.rule = ImageRule::rounded;
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
  stack.final_norm = stack.norm;
  ignore_tower_keys(vision);
  return tower;
}

/// Throws where the values of a patch or the pixels of a merged block's side cannot be counted.
void require_countable(const ConfigReader& vision, const ImageSpec& image, std::int64_t side) {
  const std::int64_t area = product(vision, "patch_size", image.patch_size, image.patch_size);
  const std::int64_t of_frame = product(vision, "num_channels", area, image.num_channels);
  (void)product(vision, "temporal_patch_size", of_frame, image.num_frames);
  (void)product(vision, "spatial_merge_size", image.patch_size, side);
}

}  // namespace

void use_class_sections(ModelSpec& spec, const std::array<std::int64_t, 3>& sections) {
  RopeSpec& rope = spec.position.rope;
  if (rope.axes != RopeAxes::sequence) return;
  rope.axes = RopeAxes::sections;
  rope.sections = sections;
  const std::int64_t head_dim = spec.main_stack().self_attention.head_dim;
  const std::int64_t rotary = rope.rotary_dim == 0 ? head_dim : rope.rotary_dim;
  if (2 * std::accumulate(sections.begin(), sections.end(), std::int64_t{0}) == rotary) return;
  spec.not_run = "its class's mrope_section does not fit its heads: add mrope_section";
}

void read_paddleocr_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_axial_encoder(vision, {1152, 4304, 27, 16, 14});
  ImageSpec& image = *tower.embedding.image;
  (void)read_patch_grid(vision, "num_channels", 384, 14);
  image.image_size = vision.size_or({"image_size"}, 384);
  image.interpolation = PositionInterpolation::linear_centres;
  tower.position.kind = PositionKind::learned_and_rotary;
  tower.position.max_position_embeddings = image.num_patches();
  const std::int64_t side = vision.size_or({"spatial_merge_size"}, 2);
  require_countable(vision, image, side);
  const std::int64_t merged =
      product(vision, "spatial_merge_size", product(vision, "spatial_merge_size", side, side),
              tower.hidden_size);
  vision.ignore({"pad_token_id", "temporal_patch_size", "tokens_per_second"});
  read_common_keys(vision, spec);
  vision.finish();
  constexpr double kNormEps = 1e-5;  // of the class
  tower.projector.steps = {NormStep{"norm", {NormKind::layer_norm, true, kNormEps}},
                           MergeStep{PatchMerge::patch_major, side}, LinearStep{"up", merged, true},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, true}};
  use_class_sections(spec, {16, 24, 24});
  spec.tower = std::move(tower);
}

void read_minimax_m3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower =
      read_axial_encoder(vision, {1280, 5120, 32, 16, 14, ActivationKind::gelu, 1e-5});
  ConfigReader merging = vision.object_or_empty("img_token_compression_config");
  // As transformers 5 writes it, the vision_config itself has both.
  ImageSpec& image = *tower.embedding.image;
  image.num_frames =
      merging.size_or({"temporal_patch_size"}, vision.size_or({"temporal_patch_size"}, 2));
  image.block_side =
      merging.size_or({"spatial_merge_size"}, vision.size_or({"spatial_merge_size"}, 2));
  image.patch_bias = false;
  require_countable(vision, image, image.block_side);
  merging.expect_text("image_token_compression_method", "patch_merge");
  merging.finish();
  vision.expect_text("position_embedding_type", "rope");
  vision.ignore({"rope_mode", "initializer_factor", "vision_segment_max_frames", "image_size"});
  vision.finish();
  tower.embedding.norm = tower.stack.norm;
  tower.stack.final_norm.reset();
  RopeSpec& rope = tower.position.rope;
  constexpr std::int64_t kAxes = 3;
  rope.axes = RopeAxes::time_then_rows_then_columns;
  rope.rotary_dim = 2 * kAxes * (tower.stack.self_attention.head_dim / kAxes / 2);
  if (rope.rotary_dim == 0) {
    vision.fail("num_attention_heads", "leaves heads too small for RoPE of three axes",
                "use heads of at least 6");
  }
  const std::int64_t inner = config.size_or({"projector_hidden_size"}, spec.hidden_size);
  const std::int64_t area =
      product(vision, "spatial_merge_size", image.block_side, image.block_side);
  const std::int64_t merged = product(vision, "spatial_merge_size", area, spec.hidden_size);
  config.expect_flag("multimodal_projector_bias", true);
  config.expect_number("merged_hidden_size", static_cast<double>(merged));
  config.ignore({"img_token_compression_config", "image_grid_pinpoints", "image_seq_length",
                 "process_image_mode", "projector_hidden_act", "vision_feature_layer",
                 "vision_feature_select_strategy"});
  tower.projector.steps = {LinearStep{"up", inner, true},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, true},
                           MergeStep{PatchMerge::patch_major, image.block_side},
                           LinearStep{"merger.up", inner, true},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"merger.down", spec.hidden_size, true}};
  spec.tower = std::move(tower);
}

void read_video_llama3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_axial_encoder(vision, {});
  require_countable(vision, *tower.embedding.image, 1);
  vision.finish();
  // Patches of videos are merged, those of images are not.
  tower.projector.steps = {LinearStep{"up", spec.hidden_size, true},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, true}};
  config.ignore(
      {"use_token_compression", "vision_encoder", "mm_projector_type", "image_aspect_ratio"});
  spec.tower = std::move(tower);
}

}  // namespace headroom::detail
