// Towers of Phi-3 Vision (modeling_phi3_v.py of Phi-3-vision-128k-instruct) and Phi-4 multimodal
// (arXiv 2503.01743; modeling_phi4mm.py of Phi-4-multimodal-instruct): CLIP or SigLIP on tiles of
// an image, whose rows end in a trained vector, a separator, and the whole image.
#include <nlohmann/json.hpp>

#include "encoder_specs.h"
#include "image_towers.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// CLIP's ViT-L/14 of 336 pixels (arXiv 2103.00020), which the class of Phi-3 Vision states.
constexpr std::string_view kClipLarge = R"({"hidden_size": 1024, "intermediate_size": 4096,
    "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14})";

/// Most tiles of an image, besides the whole: num_crops of Phi-3 Vision's preprocessor_config.json,
/// and dynamic_hd of transformers' Phi-4 multimodal processor.
constexpr std::int64_t kMostPhi3Tiles = 16;
constexpr std::int64_t kMostPhi4Tiles = 36;

/// The token that rows of an image replace in Phi-4 multimodal.
constexpr std::int64_t kPhi4Placeholder = 200010;

/// The packing of tiles, and an MLP of two layers to the text model.
void add_packed_projector(ModelSpec& spec, PackStep::Order order, TowerSpec& tower) {
  tower.projector.steps = {PackStep{order}, LinearStep{"up", spec.hidden_size, true},
                           ActivationStep{ActivationKind::gelu},
                           LinearStep{"down", spec.hidden_size, true}};
  const ImageSpec& image = *tower.embedding.image;
  const bool halves = image.image_size / image.patch_size % tower.projector.pack()->side() == 0;
  if (!halves) spec.not_run = "its projector mirrors a row of patches";
}

/// The number of layers before hidden state `index`, as Python counts from the end.
std::int64_t read_feature_layer(ConfigReader& vision, std::string_view key,
                                const TowerSpec& tower) {
  constexpr std::int64_t kLastButOne = -2;
  const std::int64_t index = vision.integers_or(key, kLastButOne).front();
  const std::int64_t layers = tower.stack.num_layers;
  const std::int64_t before = index < 0 ? layers + 1 + index : index;
  if (before >= 1 && before <= layers) return before;
  vision.fail(key, "is not a layer of the tower", "use a layer's number, or one from the end");
}

/// Means of 2 × 2 patches, and an MLP of two layers.
void add_phi4_projector(TowerSpec tower, ModelSpec& spec) {
  add_packed_projector(spec, PackStep::Order::means_then_whole, tower);
  tower.rule = ImageRule::tiles_of_own_size;
  tower.most_tiles = kMostPhi4Tiles;
  spec.tower = std::move(tower);
}

}  // namespace

void read_phi3_v_tower(ConfigReader& config, ModelSpec& spec) {
  const nlohmann::json sizes = nlohmann::json::parse(kClipLarge);
  ConfigReader clip(sizes, "clip-vit-large-patch14-336");
  TowerSpec tower = read_clip(clip, spec);
  std::int64_t layer = tower.stack.num_layers - 1;
  if (auto processor = config.object("img_processor")) {
    processor->expect_text("name", "clip_vision_model");
    processor->expect_text("model_name", "openai/clip-vit-large-patch14-336");
    processor->expect_number("image_dim_out", static_cast<double>(tower.hidden_size));
    processor->expect_text("type_feature", "patch");
    layer = read_feature_layer(*processor, "layer_idx", tower);
    processor->ignore({"num_img_tokens"});
    processor->finish();
  }
  if (auto embedding = config.object("embd_layer")) {
    embedding->expect_text("embedding_cls", "image");
    embedding->expect_text("projection_cls", "mlp");
    embedding->expect_flag("use_hd_transform", true);
    embedding->expect_flag("with_learnable_separator", true);
    embedding->expect_text("hd_transform_order", "sub_glb");
    embedding->finish();
  }
  tower.projector.feature_layers = {layer};
  add_packed_projector(spec, PackStep::Order::blocks_then_whole, tower);
  tower.rule = ImageRule::tiles_of_most_columns;
  tower.most_tiles = kMostPhi3Tiles;
  // The placeholders of image n are -n.
  constexpr std::int64_t kMostImages = 64;
  for (std::int64_t image = 1; image <= kMostImages; ++image) spec.tower_tokens.push_back(-image);
  spec.tower = std::move(tower);
}

void read_phi4_vision_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_phi4_vision(vision, spec);
  tower.projector.feature_layers = {read_feature_layer(vision, "feature_layer", tower)};
  vision.expect_number("crop_size", static_cast<double>(tower.embedding.image->image_size));
  spec.tower_tokens.push_back(vision.count_or({"image_token_id"}, kPhi4Placeholder));
  read_common_keys(vision, spec);
  vision.finish();
  add_phi4_projector(std::move(tower), spec);
}

void read_phi4mm_vision_tower(ConfigReader& config, ConfigReader& embedding, ModelSpec& spec) {
  const nlohmann::json sizes = nlohmann::json::object();  // those of the class
  ConfigReader siglip(sizes, "siglip-so400m-patch14-448");
  TowerSpec tower = read_phi4_vision(siglip, spec);
  std::int64_t layer = tower.stack.num_layers - 1;
  if (auto processor = config.object("img_processor")) {
    processor->expect_text("type_feature", "patch");
    layer = read_feature_layer(*processor, "layer_idx", tower);
    processor->ignore({"name", "model_name"});
    processor->finish();
  }
  tower.projector.feature_layers = {layer};
  embedding.expect_text("embedding_cls", "tune_image");
  embedding.expect_text("image_token_compression_cls", "avg_pool_2d");
  embedding.expect_text("projection_cls", "mlp");
  embedding.expect_text("hd_transform_order", "sub_glb");
  embedding.expect_flag("use_hd_transform", true);
  embedding.expect_flag("with_learnable_separator", true);
  embedding.expect_number("crop_size", static_cast<double>(tower.embedding.image->image_size));
  embedding.ignore({"enable_gradient_checkpointing", "freeze_img_processor"});
  embedding.finish();
  spec.tower_tokens.push_back(kPhi4Placeholder);
  add_phi4_projector(std::move(tower), spec);
}

}  // namespace headroom::detail
