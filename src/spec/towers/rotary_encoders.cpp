// Towers of Llama 4, Kimi K2.5 and Kimi K3 (MoonViT, arXiv 2504.07491; moonshotai/Kimi-K3,
// modeling_kimi_k3.py), and Muse Glimmer (transformers, models/muse_glimmer): learned positions and
// 2-D RoPE.
#include "../decoder.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr double kRotaryNormEps = 1e-5;  // of the layers' norms in these classes

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

/// A pre-norm encoder with biases, learned positions and RoPE of interleaved pairs. Its heads are
/// `heads_width` wide together.
TowerSpec rotary_encoder(ConfigReader& vision, std::int64_t width, std::int64_t heads,
                         std::int64_t heads_width) {
  TowerSpec tower;
  tower.hidden_size = width;
  tower.embedding.input = InputKind::patches;
  tower.position.kind = PositionKind::learned_and_rotary;
  tower.position.rope.layout = RopeLayout::interleaved;
  StackSpec& stack = tower.stack;
  stack.self_attention = multi_head_attention(vision, "num_attention_heads", heads, heads_width);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.norm = {NormKind::layer_norm, true, kRotaryNormEps};
  stack.final_norm = stack.norm;
  return tower;
}

std::int64_t squared_side(const ConfigReader& config, std::string_view key, std::int64_t side) {
  return product(config, key, side, side);
}

/// Sizes of a MoonViT whose config leaves them out, and a choice of its class.
struct MoonVit {
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t inner = 0;
  std::int64_t heads_width = 0;   ///< 0: width
  std::int64_t most_patches = 0;  ///< in_patch_limit of its preprocessor
  PositionInterpolation interpolation = PositionInterpolation::none;
};

constexpr MoonVit kMoonVitK25{1152, 16, 4304, 0, 16384, PositionInterpolation::bicubic};
constexpr MoonVit kMoonVitK3{1024, 12, 4096, 1536, 65536, PositionInterpolation::linear_centres};

/// The patches of a MoonViT and the table of their positions.
void read_moon_vit_patches(ConfigReader& vision, const MoonVit& absent, TowerSpec& tower,
                           ModelSpec& spec) {
  ImageSpec image = read_square_patches(vision, "in_channels", 896);
  const std::int64_t rows = vision.size_or({"init_pos_emb_height", "pos_emb_height"}, 64);
  const std::int64_t columns = vision.size_or({"init_pos_emb_width", "pos_emb_width"}, 64);
  if (rows != columns) spec.not_run = "its table of positions is not square";
  image.image_size = product(vision, "init_pos_emb_height", rows, image.patch_size);
  image.prefix = PrefixTokens::none;
  image.interpolation = absent.interpolation;
  image.pixels = PixelLayout::patches;
  tower.embedding.image = image;
  tower.position.max_position_embeddings = product(vision, "init_pos_emb_height", rows, columns);
  tower.rule = ImageRule::native;
  tower.pixel_limits =
      PixelLimits{0, product(vision, "patch_size", absent.most_patches,
                             squared_side(vision, "patch_size", image.patch_size))};
}

/// The encoder of Kimi K2.5 or K3, whose keys have other names in transformers.
TowerSpec read_moon_vit(ConfigReader& vision, const MoonVit& absent, ModelSpec& spec) {
  const std::int64_t width = vision.size_or({"vt_hidden_size", "hidden_size"}, absent.width);
  const std::int64_t heads =
      vision.size_or({"vt_num_attention_heads", "num_attention_heads"}, absent.heads);
  const std::int64_t heads_width =
      absent.heads_width == 0 ? width : vision.size_or({"qkv_hidden_size"}, absent.heads_width);
  TowerSpec tower = rotary_encoder(vision, width, heads, heads_width);
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  tower.position.rope.axes = RopeAxes::columns_and_rows_take_turns;
  read_moon_vit_patches(vision, absent, tower, spec);
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"vt_num_hidden_layers", "num_hidden_layers"}, 27);
  stack.ffn = {FfnKind::plain,
               vision.size_or({"vt_intermediate_size", "intermediate_size"}, absent.inner),
               ActivationKind::gelu_tanh, true};
  vision.expect_number("mm_hidden_size", static_cast<double>(width));
  vision.expect_number("text_hidden_size", static_cast<double>(spec.hidden_size));
  // Sines over time and the pooling of frames change no image.
  vision.ignore(
      {"init_pos_emb_time", "pos_emb_time", "merge_type", "pos_emb_type", "video_attn_type"});
  return tower;
}

/// Side of the squares of patches that one visual token has.
std::int64_t read_merged_patches(ConfigReader& vision) {
  const std::array<std::int64_t, 2> merged = vision.sides_or("merge_kernel_size", 2);
  if (merged[0] != merged[1]) {
    vision.fail("merge_kernel_size", "merges blocks of patches that are not square",
                "write one size for both sides");
  }
  return merged[0];
}

/// Width of merged patches side by side.
std::int64_t merged_width(const ConfigReader& vision, std::int64_t side, std::int64_t width) {
  return product(vision, "merge_kernel_size", squared_side(vision, "merge_kernel_size", side),
                 width);
}

/// Choices of Kimi K3's layers that K2.5's do not have.
void read_kimi_k3_layers(ConfigReader& vision, TowerSpec& tower) {
  // torch's RMSNorm without an eps takes the least difference from 1 of its type, here float32.
  constexpr double kRmsEps = 0x1p-23;
  StackSpec& stack = tower.stack;
  const auto kind = vision.choice_or<NormKind>(
      {"norm_type"}, {{"layernorm", NormKind::layer_norm}, {"rmsnorm", NormKind::rms_norm}},
      NormKind::rms_norm);
  if (kind == NormKind::rms_norm) stack.norm = {kind, false, kRmsEps};
  stack.final_norm = stack.norm;
  stack.self_attention.qkv_bias = vision.flag_or({"attn_bias"}, false);
  stack.self_attention.output_bias = stack.self_attention.qkv_bias;
  stack.ffn.bias = vision.flag_or({"linear_bias"}, false);
  ImageSpec& image = *tower.embedding.image;
  image.patch_bias = vision.flag_or({"patch_embed_proj_bias"}, false);
  image.interpolation =
      vision.choice_or<PositionInterpolation>({"pos_emb_interpolation_mode"},
                                              {{"bilinear", PositionInterpolation::linear_centres},
                                               {"bicubic", PositionInterpolation::bicubic}},
                                              image.interpolation);
  vision.expect_text("mlp_type", "mlp2");
  vision.ignore({"activation_func"});  // gelu_pytorch_tanh whatever it says
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

/// Muse Glimmer's patches: a window is as wide as the table of positions.
void read_muse_patches(ConfigReader& vision, TowerSpec& tower, ModelSpec& spec) {
  constexpr std::int64_t kMostTokens = 4096;  // max_image_tokens of its preprocessor
  ImageSpec image;
  image.patch_size = vision.size_or({"patch_size"}, 14);
  image.num_channels = 3;
  image.num_frames = vision.size_or({"patch_temporal"}, 2);
  image.patch_bias = false;
  image.prefix = PrefixTokens::none;
  image.pixels = PixelLayout::patches;
  image.interpolation = PositionInterpolation::linear_swapped;
  const std::int64_t rows = vision.size_or({"pos_emb_height"}, 32);
  const std::int64_t columns = vision.size_or({"pos_emb_width"}, 32);
  if (rows != columns) spec.not_run = "its table of positions is not square";
  image.window_blocks = rows;
  image.image_size = product(vision, "pos_emb_height", rows, image.patch_size);
  tower.embedding.image = image;
  tower.position.max_position_embeddings = product(vision, "pos_emb_height", rows, columns);
  const std::int64_t side = vision.size_or({"merge_size"}, 2);
  const std::int64_t unit = product(vision, "merge_size", side, image.patch_size);
  tower.rule = ImageRule::nearest_aspect;
  tower.pixel_limits = PixelLimits{
      0, product(vision, "merge_size", kMostTokens, product(vision, "merge_size", unit, unit))};
  tower.projector.steps = {MergeStep{PatchMerge::channel_major, side}};
}

/// Every fourth layer and the last attend to the whole image, unless layer_types says otherwise.
void read_muse_layers(ConfigReader& vision, TowerSpec& tower) {
  StackSpec& stack = tower.stack;
  const std::int64_t count = vision.layers_or({"num_hidden_layers"}, 50);
  stack.num_layers = count;
  stack.ffn = {FfnKind::plain, vision.size_or({"intermediate_size"}, 8960),
               read_activation(vision, {"hidden_act"}, ActivationKind::gelu), true};
  const std::vector<bool> full = read_full_attention_layers(
      vision, count, {"window_attention"},
      [&](std::int64_t layer) { return (layer + 1) % 4 == 0 || layer == count - 1; });
  vary_layers(stack, full, [](LayerVariant& variant) {
    variant.self_attention.image_scope = ImageScope::window;
  });
}

}  // namespace

void read_llama4_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t width = vision.size_or({"hidden_size"}, 768);
  TowerSpec tower =
      rotary_encoder(vision, width, vision.size_or({"num_attention_heads"}, 16), width);
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
  TowerSpec tower = read_moon_vit(vision, kMoonVitK25, spec);
  tower.stack.ffn.activation = read_activation(vision, {"hidden_act"}, ActivationKind::gelu_tanh);
  const std::int64_t side = read_merged_patches(vision);
  vision.expect_text("mm_projector_type", "patchmerger");
  const double eps = config.number_or({"projection_layer_norm_eps"},
                                      vision.number_or({"projector_ln_eps"}, kRotaryNormEps));
  ignore_tower_keys(vision);
  vision.finish();
  tower.projector.steps = {
      NormStep{"norm", {NormKind::layer_norm, true, eps}}, MergeStep{PatchMerge::patch_major, side},
      LinearStep{"up", merged_width(vision, side, tower.hidden_size), true},
      ActivationStep{ActivationKind::gelu}, LinearStep{"down", spec.hidden_size, true}};
  config.ignore(
      {"projection_hidden_size", "ignore_index", "use_unified_vision_chunk", "video_placeholder"});
  spec.tower = std::move(tower);
}

void read_kimi_k3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_moon_vit(vision, kMoonVitK3, spec);
  read_kimi_k3_layers(vision, tower);
  const std::int64_t side = read_merged_patches(vision);
  vision.expect_text("mm_projector_type", "patchmergerv2");
  const double eps = vision.number_or({"projector_ln_eps"}, kRotaryNormEps);
  ignore_tower_keys(vision);
  vision.finish();
  tower.projector.steps = {MergeStep{PatchMerge::patch_major, side},
                           LinearStep{"up", merged_width(vision, side, tower.hidden_size), false},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, false},
                           NormStep{"norm", {NormKind::rms_norm, false, eps}}};
  config.ignore({"ignore_index", "image_placeholder"});
  spec.tower = std::move(tower);
}

void read_muse_glimmer_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t width = vision.size_or({"hidden_size"}, 1536);
  TowerSpec tower =
      rotary_encoder(vision, width, vision.size_or({"num_attention_heads"}, 16), width);
  tower.position.rope.layout = RopeLayout::half_split;
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  tower.position.rope.axes = RopeAxes::columns_then_rows;
  tower.position.rope.coordinates = PatchCoordinates::from_one;
  read_muse_patches(vision, tower, spec);
  read_muse_layers(vision, tower);
  tower.embedding.norm =
      NormSpec{NormKind::layer_norm, true, vision.number_or({"layer_norm_eps"}, kRotaryNormEps)};
  tower.stack.final_norm = tower.embedding.norm;
  const std::int64_t side = tower.projector.merged_side();
  const std::int64_t merged =
      product(vision, "merge_size", squared_side(vision, "merge_size", side), width);
  config.expect_number("out_hidden_size", static_cast<double>(merged));
  const std::int64_t inner = config.size_or({"projector_hidden_size"}, 4096);
  const ActivationStep activation{
      read_activation(config, {"projector_hidden_act"}, ActivationKind::gelu)};
  const NormSpec unweighted{NormKind::rms_norm, false, spec.decoder->norm.eps, NormWeight::none};
  std::vector<ProjectorStep>& steps = tower.projector.steps;
  steps.insert(
      steps.end(),
      {LinearStep{"up", inner, false}, activation, LinearStep{"down", inner, false}, activation,
       LinearStep{"linear", spec.hidden_size, false}, NormStep{"norm", unweighted}});
  ignore_tower_keys(vision);
  vision.ignore({"max_position_embeddings"});
  vision.finish();
  spec.tower = std::move(tower);
}

}  // namespace headroom::detail
