// Towers of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5 (arXiv 2409.12191, 2502.13923, 2511.21631).
#include <algorithm>

#include "../decoder.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr double kNormEps = 1e-6;         // of every norm in these classes
constexpr std::int64_t kOutWidth = 3584;  // of Qwen3-VL's mergers, where the config states none

/// Defaults of a class.
struct QwenDefaults {
  std::int64_t width = 1280;
  std::int64_t layers = 32;
  std::int64_t patch_size = 14;
  ActivationKind activation = ActivationKind::quick_gelu;
};

ImageSpec read_qwen_image(ConfigReader& vision, std::int64_t patch_when_absent) {
  ImageSpec image;
  image.patch_size = vision.size_or({"patch_size", "spatial_patch_size"}, patch_when_absent);
  image.num_channels = vision.size_or({"in_channels", "in_chans"}, 3);
  image.num_frames = vision.size_or({"temporal_patch_size"}, 2);
  image.block_side = vision.size_or({"spatial_merge_size"}, 2);
  image.prefix = PrefixTokens::none;
  image.interpolation = PositionInterpolation::any_size;
  image.patch_bias = false;
  image.pixels = PixelLayout::patches;
  return image;
}

/// A pre-norm encoder with biases and 2-D RoPE, whose FFN has no width yet.
TowerSpec read_tower(ConfigReader& vision, ConfigReader::Keys width, const QwenDefaults& absent) {
  TowerSpec tower;
  tower.hidden_size = vision.size_or(width, absent.width);
  tower.embedding.input = InputKind::patches;
  tower.embedding.image = read_qwen_image(vision, absent.patch_size);
  tower.position.kind = PositionKind::rotary;
  tower.position.rope.axes = RopeAxes::rows_then_columns;
  tower.position.rope.theta = read_axial_theta(vision, 10000);
  tower.rule = ImageRule::rounded;
  StackSpec& stack = tower.stack;
  stack.num_layers = vision.layers_or({"depth"}, absent.layers);
  stack.self_attention = multi_head_attention(vision, "num_heads",
                                              vision.size_or({"num_heads"}, 16), tower.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.ffn.kind = FfnKind::plain;
  stack.ffn.activation = read_activation(vision, {"hidden_act"}, absent.activation);
  stack.ffn.bias = true;
  stack.norm = {NormKind::layer_norm, true, kNormEps};
  ignore_tower_keys(vision);
  return tower;
}

/// Features of merged patches.
std::int64_t merged_width(const ConfigReader& vision, const TowerSpec& tower) {
  const std::int64_t side = tower.embedding.image->block_side;
  return product(vision, "spatial_merge_size", product(vision, "spatial_merge_size", side, side),
                 tower.hidden_size);
}

std::vector<ProjectorStep> two_layers(std::int64_t wide, std::int64_t out) {
  return {LinearStep{"up", wide, true}, ActivationStep{ActivationKind::gelu},
          LinearStep{"down", out, true}};
}

/// The steps from patches to visual tokens of width `out`: a norm, the merge of a block, two
/// layers.
void add_merger(const ConfigReader& vision, ModelSpec& spec, TowerSpec& tower, std::int64_t out) {
  if (out != spec.hidden_size) {
    spec.not_run = "its visual tokens do not have the width of the text model";
  }
  std::vector<ProjectorStep>& steps = tower.projector.steps;
  steps = two_layers(merged_width(vision, tower), out);
  steps.insert(steps.begin(),
               {NormStep{"norm", tower.stack.norm},
                MergeStep{PatchMerge::patch_major, tower.embedding.image->block_side}});
}

/// Layers outside `fullatt_block_indexes` attend within windows of patches.
void read_windows(ConfigReader& vision, TowerSpec& tower) {
  const std::int64_t window = vision.size_or({"window_size"}, 112);
  ImageSpec& image = *tower.embedding.image;
  image.window_blocks = window / image.block_side / image.patch_size;
  if (image.window_blocks == 0) {
    vision.fail("window_size", "is smaller than a block of merged patches", "use a larger window");
  }
  std::vector<std::int64_t> full{7, 15, 23, 31};
  if (vision.has("fullatt_block_indexes")) full = vision.counts("fullatt_block_indexes");
  std::vector<bool> is_full;
  for (std::int64_t layer = 0; layer < tower.stack.num_layers; ++layer) {
    is_full.push_back(std::ranges::find(full, layer) != full.end());
  }
  vary_layers(tower.stack, is_full, [](LayerVariant& variant) {
    variant.self_attention.image_scope = ImageScope::window;
  });
}

/// A square table of positions, beside RoPE.
void read_position_table(ConfigReader& vision, TowerSpec& tower) {
  const std::int64_t positions = vision.size_or({"num_position_embeddings"}, 2304);
  const std::int64_t side = square_side(vision, "num_position_embeddings", positions);
  ImageSpec& image = *tower.embedding.image;
  image.image_size = product(vision, "num_position_embeddings", side, image.patch_size);
  image.interpolation = PositionInterpolation::linear;
  tower.position.kind = PositionKind::learned_and_rotary;
  tower.position.max_position_embeddings = positions;
}

TowerSpec read_qwen3_tower(ConfigReader& vision, ModelSpec& spec) {
  TowerSpec tower = read_tower(vision, {"hidden_size"}, {1152, 27, 16, ActivationKind::gelu_tanh});
  tower.stack.ffn.intermediate_size = vision.size_or({"intermediate_size"}, 4304);
  tower.embedding.image->patch_bias = true;
  read_position_table(vision, tower);
  add_merger(vision, spec, tower, vision.size_or({"out_hidden_size"}, kOutWidth));
  // These classes interleave the axes whatever the config says.
  RopeAxes& axes = spec.position.rope.axes;
  if (axes == RopeAxes::sections) axes = RopeAxes::interleaved_sections;
  return tower;
}

/// Mergers of the hidden states after some layers, whose norms follow the merge.
void read_deepstack(ConfigReader& vision, TowerSpec& tower) {
  const std::int64_t out = vision.size_or({"out_hidden_size"}, kOutWidth);
  std::vector<std::int64_t> layers{8, 16, 24};
  if (vision.has("deepstack_visual_indexes")) layers = vision.counts("deepstack_visual_indexes");
  for (const std::int64_t layer : layers) {
    if (layer >= tower.stack.num_layers) {
      vision.fail("deepstack_visual_indexes", "names a layer that the tower does not have",
                  "use indices below depth");
    }
    DeepstackSpec entry{layer + 1, two_layers(merged_width(vision, tower), out)};
    entry.steps.insert(entry.steps.begin(),
                       {MergeStep{PatchMerge::patch_major, tower.embedding.image->block_side},
                        NormStep{"norm", tower.stack.norm}});
    tower.deepstack.push_back(std::move(entry));
  }
}

}  // namespace

void read_qwen2_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_tower(vision, {"embed_dim"}, {});
  tower.stack.ffn.intermediate_size =
      product(vision, "mlp_ratio", vision.size_or({"mlp_ratio"}, 4), tower.hidden_size);
  add_merger(vision, spec, tower, vision.size_or({"hidden_size"}, 3584));
  vision.finish();
  spec.tower = std::move(tower);
}

void read_qwen2_5_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_tower(vision, {"hidden_size"}, {3584, 32, 14, ActivationKind::silu});
  tower.stack.ffn.kind = FfnKind::gated;
  tower.stack.ffn.intermediate_size = vision.size_or({"intermediate_size"}, 3420);
  tower.stack.norm = {NormKind::rms_norm, false, kNormEps};
  read_windows(vision, tower);
  add_merger(vision, spec, tower, vision.size_or({"out_hidden_size"}, 3584));
  vision.expect_number("embed_dim", static_cast<double>(tower.hidden_size));
  vision.ignore({"tokens_per_second"});  // of videos
  vision.finish();
  spec.tower = std::move(tower);
}

void read_qwen3_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_qwen3_tower(vision, spec);
  read_deepstack(vision, tower);
  vision.finish();
  spec.tower = std::move(tower);
}

void read_qwen3_5_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  vision.expect_empty("deepstack_visual_indexes");
  spec.tower = read_qwen3_tower(vision, spec);
  vision.finish();
}

void read_exaone4_5_tower(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kGroups = 8;
  read_qwen2_5_vl_tower(config, spec);
  ConfigReader vision = config.object_or_empty("vision_config");
  AttentionSpec& attention = spec.tower->stack.self_attention;
  attention.num_key_value_heads = vision.size_or({"num_key_value_heads"}, kGroups);
  if (attention.num_attention_heads % attention.num_key_value_heads != 0) {
    vision.fail("num_key_value_heads", "does not divide num_heads", "use a divisor");
  }
  for (LayerVariant& variant : spec.tower->stack.variants) {
    variant.self_attention.num_key_value_heads = attention.num_key_value_heads;
  }
}

void read_hyperclovax_vision_tower(ConfigReader& config, ModelSpec& spec) {
  const std::string not_run = spec.not_run;
  read_qwen2_5_vl_tower(config, spec);
  spec.not_run = not_run;  // the projector gives the merged patches the width of the text model
  spec.tower->projector.steps.emplace_back(LinearStep{"linear", spec.hidden_size, true});
}

}  // namespace headroom::detail
