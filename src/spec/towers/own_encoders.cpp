// Towers that are counted and belong to one family each: Llama 4, Kimi K2.5, MiniMax M3.
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kEmbedding = WeightRole::embedding;
constexpr auto kProjector = WeightRole::projector;

std::int64_t squared(const ConfigReader& config, std::string_view key, std::int64_t side) {
  return product(config, key, side, side);
}

}  // namespace

void count_llama4_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 768);
  layers.inner = vision.size_or({"intermediate_size"}, 5632);
  layers.count = vision.layers_or({"num_hidden_layers"}, 34);
  ignore_tower_keys(vision);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 448, 14);
  const std::int64_t input = vision.size_or({"projector_input_dim"}, 4096);
  const std::int64_t output = vision.size_or({"projector_output_dim"}, 4096);
  const std::int64_t to_text = vision.size_or({"vision_output_dim"}, 7680);
  vision.ignore({"pixel_shuffle_ratio"});  // patches merged into one; changes no weight
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, grid.elements}, kEmbedding);
  tower.add("class_token", {layers.width}, kEmbedding);
  tower.add("position_embeddings.weight", {grid.patches + 1, layers.width}, kEmbedding);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  // The adapter stands inside the vision model.
  tower.add("adapter.up.weight", {input, layers.inner}, WeightRole::mlp);
  tower.add("adapter.down.weight", {output, input}, WeightRole::mlp);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("weight", {spec.hidden_size, to_text}, kProjector);
}

void count_kimi_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const PatchGrid grid = read_patch_grid(vision, "in_channels", 896, 14);
  TowerLayers layers;
  layers.width = vision.size_or({"vt_hidden_size", "hidden_size"}, 1152);
  layers.inner = vision.size_or({"vt_intermediate_size", "intermediate_size"}, 4304);
  layers.count = vision.layers_or({"vt_num_hidden_layers", "num_hidden_layers"}, 27);
  const std::int64_t rows = vision.size_or({"init_pos_emb_height", "pos_emb_height"}, 64);
  const std::int64_t columns = vision.size_or({"init_pos_emb_width", "pos_emb_width"}, 64);
  const std::array<std::int64_t, 2> merged = vision.sides_or("merge_kernel_size", 2);
  vision.expect_number("mm_hidden_size", static_cast<double>(layers.width));
  vision.expect_number("text_hidden_size", static_cast<double>(spec.hidden_size));
  vision.expect_text("mm_projector_type", "patchmerger");
  // Sines over time, pooling of frames, heads: no weights.
  vision.ignore({"init_pos_emb_time", "pos_emb_time", "merge_type", "pos_emb_type",
                 "projector_ln_eps", "video_attn_type", "vt_num_attention_heads"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kEmbedding);
  tower.add("position_embeddings.weight",
            {product(vision, "init_pos_emb_height", rows, columns), layers.width}, kEmbedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  const std::int64_t wide =
      product(vision, "merge_kernel_size",
              product(vision, "merge_kernel_size", merged[0], merged[1]), layers.width);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::layer_norm, "norm", layers.width);
  projector.linear("up", wide, wide, kProjector);
  projector.linear("down", wide, spec.hidden_size, kProjector);
  config.ignore({"projection_hidden_size", "projection_layer_norm_eps", "ignore_index",
                 "media_placeholder_token_id", "use_unified_vision_chunk", "video_placeholder"});
}

void count_minimax_m3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1280);
  layers.inner = vision.size_or({"intermediate_size"}, 5120);
  layers.count = vision.layers_or({"num_hidden_layers"}, 32);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 2016, 14);
  ConfigReader merging = vision.object_or_empty("img_token_compression_config");
  const std::int64_t frames = merging.size_or({"temporal_patch_size"}, 2);
  const std::int64_t side = merging.size_or({"spatial_merge_size"}, 2);
  merging.expect_text("image_token_compression_method", "patch_merge");
  merging.finish();
  vision.expect_text("position_embedding_type", "rope");
  vision.ignore({"rope_mode", "initializer_factor", "vision_segment_max_frames"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight",
            {layers.width, product(vision, "patch_size", frames, grid.elements)}, kEmbedding);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.layers(layers);
  const std::int64_t inner = config.size_or({"projector_hidden_size"}, spec.hidden_size);
  const std::int64_t merged = product(
      vision, "spatial_merge_size", squared(vision, "spatial_merge_size", side), spec.hidden_size);
  config.expect_flag("multimodal_projector_bias", true);
  config.ignore({"img_token_compression_config", "image_grid_pinpoints", "image_seq_length",
                 "process_image_mode", "projector_hidden_act", "vision_feature_layer",
                 "vision_feature_select_strategy"});
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("up", layers.width, inner, kProjector);
  projector.linear("down", inner, spec.hidden_size, kProjector);
  projector.linear("merger.up", merged, inner, kProjector);
  projector.linear("merger.down", inner, spec.hidden_size, kProjector);
}

}  // namespace headroom::detail
