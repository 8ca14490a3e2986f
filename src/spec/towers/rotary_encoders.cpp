// Towers of Llama 4 and Kimi K2.5 (MoonViT, arXiv 2504.07491): learned positions and 2-D RoPE.
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr double kRotaryNormEps = 1e-5;  // of every norm in these classes

ImageSpec read_square_patches(ConfigReader& vision, std::string_view channels_key,
                              std::int64_t image_size) {
  const PatchGrid grid = read_patch_grid(vision, channels_key, image_size, 14);
  const auto sides = vision.sides_or("patch_size", 14);
  if (sides[0] != sides[1]) {
    vision.fail("patch_size", "has sides that differ", "use square patches");
  }
  ImageSpec image;
  image.patch_size = sides[0];
  image.num_channels = grid.elements / (sides[0] * sides[0]);
  return image;
}

/// A pre-norm encoder with biases, learned positions and RoPE of interleaved pairs.
TowerSpec rotary_encoder(ConfigReader& vision, std::int64_t width, std::int64_t heads) {
  TowerSpec tower;
  tower.hidden_size = width;
  tower.embedding.input = InputKind::patches;
  tower.position.kind = PositionKind::learned_and_rotary;
  tower.position.rope.layout = RopeLayout::interleaved;
  StackSpec& stack = tower.stack;
  stack.self_attention = multi_head_attention(vision, "num_attention_heads", heads, width);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.norm = {NormKind::layer_norm, true, kRotaryNormEps};
  stack.final_norm = stack.norm;
  return tower;
}

std::int64_t squared_side(const ConfigReader& config, std::string_view key, std::int64_t side) {
  return product(config, key, side, side);
}

/// Widths of Llama 4's vision adapter: of its first layer's output, of both sides of its second
/// layer, and of the projector's input.
struct AdapterWidths {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t projected = 0;
};

/// Counts a tower whose adapter's layers do not fit together, such as that of the class's own
/// defaults: such a model cannot run.
void count_llama4_tower(const TowerSpec& tower, const AdapterWidths& widths, ModelSpec& spec) {
  const ImageSpec& image = *tower.embedding.image;
  TowerLayers layers;
  layers.count = tower.stack.num_layers;
  layers.width = tower.hidden_size;
  layers.inner = tower.stack.ffn.intermediate_size;
  TowerWeights counted(spec, ModelPart::vision);
  counted.add("patch_embeddings.weight", {layers.width, image.patch_elements()},
              WeightRole::embedding);
  counted.add("class_token", {layers.width}, WeightRole::embedding);
  counted.add("position_embeddings.weight", {image.num_tokens(), layers.width},
              WeightRole::embedding);
  counted.norm(NormKind::layer_norm, "first_norm", layers.width);
  counted.layers(layers);
  counted.norm(NormKind::layer_norm, "final_norm", layers.width);
  counted.add("adapter.up.weight", {widths.first, layers.inner}, WeightRole::mlp);
  counted.add("adapter.down.weight", {widths.second, widths.second}, WeightRole::mlp);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("weight", {spec.hidden_size, widths.projected}, WeightRole::projector);
}

}  // namespace

void read_llama4_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t width = vision.size_or({"hidden_size"}, 768);
  TowerSpec tower = rotary_encoder(vision, width, vision.size_or({"num_attention_heads"}, 16));
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  tower.position.rope.axes = RopeAxes::columns_then_rows;
  tower.position.rope.coordinates = PatchCoordinates::from_one;
  ImageSpec image = read_square_patches(vision, "num_channels", 448);
  const auto sides = vision.sides_or("image_size", 448);
  if (sides[0] != sides[1]) vision.fail("image_size", "has sides that differ", "use a square");
  image.image_size = sides[0];
  image.class_position = ClassPosition::last;
  image.patch_bias = false;
  tower.embedding.image = image;
  tower.embedding.norm = tower.stack.norm;
  tower.position.max_position_embeddings = image.num_tokens();
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"num_hidden_layers"}, 34);
  const std::int64_t inner = vision.size_or({"intermediate_size"}, 5632);
  stack.ffn = {FfnKind::plain, inner, ActivationKind::gelu, true};
  const std::int64_t input = vision.size_or({"projector_input_dim"}, 4096);
  const std::int64_t output = vision.size_or({"projector_output_dim"}, 4096);
  const std::int64_t to_text = vision.size_or({"vision_output_dim"}, 7680);
  const std::int64_t side = read_merged_side(vision, "pixel_shuffle_ratio");
  // Layers of the class take these widths, whatever the one before gives.
  const bool fits = inner == product(vision, "pixel_shuffle_ratio", side * side, width) &&
                    input == output && output == to_text;
  constexpr ModelPart kInTower = ModelPart::vision;
  tower.projector.steps = {
      MergeStep{PatchMerge::patch_major, side}, LinearStep{"adapter.up", input, false, kInTower},
      ActivationStep{ActivationKind::gelu},     LinearStep{"adapter.down", output, false, kInTower},
      ActivationStep{ActivationKind::gelu},     LinearStep{"linear", spec.hidden_size, false}};
  tower.rule = ImageRule::tiles_of_best_fit;
  ignore_tower_keys(vision);
  vision.ignore({"_vision_feature_layer"});  // as transformers 4 saves vision_feature_layer
  vision.finish();
  if (!fits) return count_llama4_tower(tower, {input, output, to_text}, spec);
  spec.tower = std::move(tower);
}

void read_kimi_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t width = vision.size_or({"vt_hidden_size", "hidden_size"}, 1152);
  TowerSpec tower = rotary_encoder(
      vision, width, vision.size_or({"vt_num_attention_heads", "num_attention_heads"}, 16));
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  tower.position.rope.axes = RopeAxes::columns_and_rows_take_turns;
  ImageSpec image = read_square_patches(vision, "in_channels", 896);
  const std::int64_t rows = vision.size_or({"init_pos_emb_height", "pos_emb_height"}, 64);
  const std::int64_t columns = vision.size_or({"init_pos_emb_width", "pos_emb_width"}, 64);
  if (rows != columns) spec.not_run = "its table of positions is not square";
  image.image_size = product(vision, "init_pos_emb_height", rows, image.patch_size);
  image.prefix = PrefixTokens::none;
  image.interpolation = PositionInterpolation::bicubic;
  image.pixels = PixelLayout::patches;
  tower.embedding.image = image;
  tower.position.max_position_embeddings = product(vision, "init_pos_emb_height", rows, columns);
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"vt_num_hidden_layers", "num_hidden_layers"}, 27);
  stack.ffn = {FfnKind::plain, vision.size_or({"vt_intermediate_size", "intermediate_size"}, 4304),
               read_activation(vision, {"hidden_act"}, ActivationKind::gelu_tanh), true};
  const std::array<std::int64_t, 2> merged = vision.sides_or("merge_kernel_size", 2);
  if (merged[0] != merged[1]) spec.not_run = "it merges blocks of patches that are not square";
  vision.expect_number("mm_hidden_size", static_cast<double>(width));
  vision.expect_number("text_hidden_size", static_cast<double>(spec.hidden_size));
  vision.expect_text("mm_projector_type", "patchmerger");
  const double eps = config.number_or({"projection_layer_norm_eps"},
                                      vision.number_or({"projector_ln_eps"}, kRotaryNormEps));
  // Sines over time and the pooling of frames change no image.
  vision.ignore(
      {"init_pos_emb_time", "pos_emb_time", "merge_type", "pos_emb_type", "video_attn_type"});
  ignore_tower_keys(vision);
  vision.finish();
  const std::int64_t wide = product(vision, "merge_kernel_size",
                                    squared_side(vision, "merge_kernel_size", merged[0]), width);
  tower.projector.steps = {NormStep{"norm", {NormKind::layer_norm, true, eps}},
                           MergeStep{PatchMerge::patch_major, merged[0]},
                           LinearStep{"up", wide, true}, ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, true}};
  config.ignore(
      {"projection_hidden_size", "ignore_index", "use_unified_vision_chunk", "video_placeholder"});
  tower.rule = ImageRule::native;
  constexpr std::int64_t kMostPatches = 16384;  // in_patch_limit of its preprocessor
  tower.pixel_limits =
      PixelLimits{0, product(vision, "patch_size", kMostPatches,
                             squared_side(vision, "patch_size", image.patch_size))};
  spec.tower = std::move(tower);
}

}  // namespace headroom::detail
