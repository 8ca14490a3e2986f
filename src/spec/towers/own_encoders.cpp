// The tower of MiniMax M3, which is counted.
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

void count_minimax_m3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1280);
  layers.inner = vision.size_or({"intermediate_size"}, 5120);
  layers.count = vision.layers_or({"num_hidden_layers"}, 32);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 2016, 14);
  ConfigReader merging = vision.object_or_empty("img_token_compression_config");
  // As transformers 5 writes it, the vision_config itself has both.
  const std::int64_t frames =
      merging.size_or({"temporal_patch_size"}, vision.size_or({"temporal_patch_size"}, 2));
  const std::int64_t side =
      merging.size_or({"spatial_merge_size"}, vision.size_or({"spatial_merge_size"}, 2));
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
  config.expect_number("merged_hidden_size", static_cast<double>(merged));
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
