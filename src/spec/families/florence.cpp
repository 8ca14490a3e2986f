// Florence-2: BART behind DaViT, whose stages of convolutions, windows and attention among channels
// count as parameters (arXiv 2311.06242, 2204.03645; transformers, models/florence2).
#include <array>
#include <string>
#include <vector>

#include "../family.h"
#include "../towers/tower_weights.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

constexpr std::size_t kStages = 4;
using Stages = std::array<std::int64_t, kStages>;

Stages read_stages(ConfigReader& vision, std::string_view key, std::string_view other,
                   const Stages& absent) {
  const std::string_view stated = vision.has(key) ? key : other;
  const std::vector<std::int64_t> values = vision.counts(stated);
  if (values.empty()) return absent;
  if (values.size() != kStages) {
    vision.fail(stated, "does not have four entries", "write one for each stage of DaViT");
  }
  Stages stages{};
  for (std::size_t i = 0; i < kStages; ++i) {
    if (values[i] < 1) vision.fail(stated, "has an entry of 0", "write at least 1 for each stage");
    stages[i] = values[i];
  }
  return stages;
}

/// True for the stages whose norm is before their convolution, over the channels that it reads.
std::array<bool, kStages> read_norms_before(ConfigReader& vision) {
  const std::vector<bool> stated = vision.flags("patch_prenorm");
  if (stated.empty()) return {false, true, true, true};
  if (stated.size() != kStages) {
    vision.fail("patch_prenorm", "does not have four entries", "write one for each stage of DaViT");
  }
  return {stated[0], stated[1], stated[2], stated[3]};
}

/// A convolution of each channel with its neighbours of 3 × 3, and a norm.
void count_neighbours(TowerWeights& tower, const std::string& path, std::int64_t width,
                      std::int64_t repeat) {
  constexpr std::int64_t kNeighbours = 9;
  tower.add(path + "_convolution.weight", {width, kNeighbours}, WeightRole::convolution, repeat);
  tower.add(path + "_convolution.bias", {width}, WeightRole::convolution, repeat);
  tower.norm(NormKind::layer_norm, path + "_norm", width, repeat);
}

/// Two halves per block: attention in windows of patches, and among channels.
void count_blocks(ConfigReader& vision, TowerWeights& tower, const std::string& path,
                  std::int64_t width, std::int64_t blocks) {
  const std::int64_t halves = product(vision, "depths", 2, blocks);
  const bool bias = vision.flag_or({"qkv_bias"}, true);
  const double ratio = vision.number_or({"mlp_ratio"}, 4);
  const std::int64_t inner = truncated(vision, "mlp_ratio", ratio, width);
  if (inner == 0) vision.fail("mlp_ratio", "leaves the networks no width", "use a larger ratio");
  count_neighbours(tower, path + "attention", width, halves);
  tower.linear_if(bias, path + "attention.qkv", width, product(vision, "embed_dim", 3, width),
                  WeightRole::attention, halves);
  tower.linear(path + "attention.output", width, width, WeightRole::attention, halves);
  count_neighbours(tower, path + "mlp", width, halves);
  tower.linear(path + "mlp.up", width, inner, WeightRole::mlp, halves);
  tower.linear(path + "mlp.down", inner, width, WeightRole::mlp, halves);
}

void count_stages(ConfigReader& vision, TowerWeights& tower, const Stages& widths) {
  const Stages depths = read_stages(vision, "depths", "depths", {1, 1, 9, 1});
  const Stages sides = read_stages(vision, "patch_size", "patch_size", {7, 3, 3, 3});
  const std::array<bool, kStages> norms_before = read_norms_before(vision);
  std::int64_t channels = vision.size_or({"in_channels"}, 3);
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    const std::string path = "stages." + std::to_string(stage) + ".";
    const std::int64_t area = product(vision, "patch_size", sides[stage], sides[stage]);
    tower.linear(path + "patches", product(vision, "patch_size", channels, area), widths[stage],
                 WeightRole::convolution);
    tower.norm(NormKind::layer_norm, path + "patches_norm",
               norms_before[stage] ? channels : widths[stage]);
    count_blocks(vision, tower, path, widths[stage], depths[stage]);
    channels = widths[stage];
  }
}

/// Positions of rows and columns: of the published files in an object of its own.
std::int64_t read_sides_of_table(ConfigReader& vision) {
  constexpr std::int64_t kPositions = 50;
  auto own = vision.object("image_pos_embed");
  if (!own) return vision.size_or({"max_position_embeddings"}, kPositions);
  own->expect_text("type", "learned_abs_2d");
  const std::int64_t positions = own->size_or({"max_pos_embeddings"}, kPositions);
  own->finish();
  return positions;
}

void count_florence2_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const Stages widths = read_stages(vision, "embed_dim", "dim_embed", {128, 256, 512, 1024});
  TowerWeights tower(spec, ModelPart::vision);
  count_stages(vision, tower, widths);
  const std::int64_t width = widths.back();
  const std::int64_t projected = vision.size_or({"projection_dim"}, 1024);
  const std::int64_t positions = read_sides_of_table(vision);
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear_if(false, "projection", width, projected, WeightRole::projector);
  projector.norm(NormKind::layer_norm, "norm", projected);
  projector.add("rows.weight", {positions, width / 2}, WeightRole::embedding);
  projector.add("columns.weight", {positions, width - width / 2}, WeightRole::embedding);
  vision.ignore({"model_type", "patch_stride", "patch_padding", "num_heads", "num_groups",
                 "window_size", "drop_path_rate", "activation_function", "max_temporal_embeddings",
                 "enable_checkpoint", "image_feature_source", "visual_temporal_embedding",
                 "initializer_range"});
  vision.finish();
  config.ignore({"image_token_id", "projection_dim"});
}

}  // namespace

std::vector<Family> florence_families() {
  return {wrapper_family({.model_types = {"florence2"},
                          .classes = {"Florence2ForConditionalGeneration"},
                          .bare_classes = {"Florence2Model"},
                          .text_type = "bart",
                          .count_towers = count_florence2_tower,
                          .tying = HeadTying::whole_else_tied})};
}

}  // namespace headroom::detail
