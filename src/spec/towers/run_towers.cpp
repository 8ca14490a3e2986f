// Towers that run: an image encoder and the steps of its projector.
#include <algorithm>

#include "encoder_specs.h"
#include "image_towers.h"
#include "towers.h"

namespace headroom::detail {
TowerSpec read_named_encoder(ConfigReader& config, ModelSpec& spec, ReadEncoder when_absent) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const auto read = vision.choice_or<ReadEncoder>({"model_type"},
                                                  {{"clip_vision_model", read_clip},
                                                   {"siglip_vision_model", read_siglip},
                                                   {"siglip2_vision_model", read_siglip2},
                                                   {"pixtral", read_pixtral}},
                                                  when_absent);
  TowerSpec tower = read(vision, spec);
  vision.finish();
  return tower;
}

TowerSpec read_only_encoder(ConfigReader& config, ModelSpec& spec, ReadEncoder read) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read(vision, spec);
  vision.finish();
  return tower;
}

namespace {

/// Two layers to the text model's width.
void add_two_layers(ConfigReader& config, const ModelSpec& spec, bool bias,
                    std::vector<ProjectorStep>& steps) {
  steps.emplace_back(LinearStep{"up", spec.hidden_size, bias});
  steps.emplace_back(
      ActivationStep{read_activation(config, {"projector_hidden_act"}, ActivationKind::gelu)});
  steps.emplace_back(LinearStep{"down", spec.hidden_size, bias});
}

/// The number of layers before hidden state `index`, as Python counts from the end.
std::int64_t layers_before(ConfigReader& config, const TowerSpec& tower, std::int64_t index) {
  const std::int64_t layers = tower.stack.num_layers;
  const std::int64_t before = index < 0 ? layers + 1 + index : index;
  if (before >= 1 && before <= layers) return before;
  config.fail("vision_feature_layer", "is not a layer of the tower",
              "use a number from 1 to num_hidden_layers, or one from the end");
}

/// Reads which rows the projector reads. `default` drops the first row of an image, the class token
/// if there is one.
void read_feature_rows(ConfigReader& config, ModelSpec& spec, TowerSpec& tower,
                       FeatureRows absent = FeatureRows::patches) {
  tower.projector.rows = config.choice_or<FeatureRows>(
      {"vision_feature_select_strategy"},
      {{"default", FeatureRows::patches}, {"full", FeatureRows::all}}, absent);
  const bool drops_patch = tower.projector.rows == FeatureRows::patches &&
                           tower.embedding.image->prefix == PrefixTokens::none;
  if (drops_patch) spec.not_run = "its projector drops a patch of every image";
}

// Sizes of VideoLlavaConfig's encoders.
constexpr std::string_view kVideoLlavaSizes = R"({"hidden_size": 1024, "intermediate_size": 4096,
    "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 224, "patch_size": 14})";

/// Video-LLaVA's encoder of frames, which has the sizes of that of images.
void count_frame_tower(const TowerSpec& images, ModelSpec& spec) {
  const ImageSpec& image = *images.embedding.image;
  TowerLayers layers;
  layers.width = images.hidden_size;
  layers.inner = images.stack.ffn.intermediate_size;
  layers.count = images.stack.num_layers;
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("frames.patch_embeddings.weight", {layers.width, image.patch_elements()},
            WeightRole::embedding);
  tower.add("frames.class_token", {layers.width}, WeightRole::embedding);
  tower.add("frames.position_embeddings.weight", {image.num_tokens(), layers.width},
            WeightRole::embedding);
  tower.norm(NormKind::layer_norm, "frames.first_norm", layers.width);
  tower.norm(NormKind::layer_norm, "frames.final_norm", layers.width);
  tower.layers(layers);
}

}  // namespace

void read_feature_layers(ConfigReader& config, TowerSpec& tower, std::int64_t when_absent) {
  for (const std::int64_t index : config.integers_or("vision_feature_layer", when_absent)) {
    tower.projector.feature_layers.push_back(layers_before(config, tower, index));
  }
}

TowerSpec read_clip_or_siglip(ConfigReader& config, ModelSpec& spec) {
  return read_named_encoder(config, spec, read_clip);
}

void read_features(ConfigReader& config, ModelSpec& spec, TowerSpec& tower,
                   const TiledDefaults& absent) {
  read_feature_layers(config, tower, absent.feature_layer);
  read_feature_rows(config, spec, tower, absent.rows);
  add_two_layers(config, spec, config.flag_or({"multimodal_projector_bias"}, true),
                 tower.projector.steps);
}

void read_llava_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_clip_or_siglip(config, spec);
  read_features(config, spec, tower, {});
  config.ignore({"vocab_size", "ignore_index", "image_seq_length"});
  const bool any_size = tower.embedding.image->interpolation == PositionInterpolation::any_size;
  if (any_size) tower.rule = ImageRule::native;
  spec.tower = std::move(tower);
}

void read_vipllava_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_clip_or_siglip(config, spec);
  std::vector<std::int64_t> indices{-2, -5, -8, -11, 6};
  for (const std::string_view key : {"vision_feature_layer", "vision_feature_layers"}) {
    if (config.has(key)) indices = config.integers_or(key, 0);
  }
  for (const std::int64_t index : indices) {
    tower.projector.feature_layers.push_back(layers_before(config, tower, index));
  }
  tower.projector.rows = FeatureRows::patches;
  tower.projector.steps.emplace_back(NormStep{
      "norm", {NormKind::layer_norm, true, config.number_or({"projector_layernorm_eps"}, 1e-5)}});
  add_two_layers(config, spec, true, tower.projector.steps);
  config.ignore({"vocab_size", "ignore_index", "image_seq_length"});
  spec.tower = std::move(tower);
}

void read_video_llava_tower(ConfigReader& config, ModelSpec& spec) {
  const ConfigReader own = config.object_or_empty("vision_config");
  std::vector<std::string> filled;  // noted for a config without vision_config
  ConfigReader vision = own.with_defaults(kVideoLlavaSizes, filled);
  TowerSpec tower = read_clip(vision, spec);
  vision.finish();
  count_frame_tower(tower, spec);
  read_features(config, spec, tower, {});
  config.ignore({"image_seq_length", "video_seq_length", "ignore_index", "vocab_size"});
  spec.tower = std::move(tower);
}
void read_paligemma_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_named_encoder(config, spec, read_siglip);
  tower.projector.steps = {
      LinearStep{"linear", config.size_or({"projection_dim"}, spec.hidden_size), true}};
  // The class's attributes; the sizes are the text model's.
  config.ignore({"hidden_size", "vocab_size", "num_image_tokens", "_vocab_size"});
  spec.tower = std::move(tower);
  // This class does not cap the logits, even of Gemma 2.
  if (spec.head.language_model) spec.head.language_model->soft_cap = 0;
  spec.decoder->self_attention.lookahead = Lookahead::prompt;
  for (LayerVariant& variant : spec.decoder->variants) {
    variant.self_attention.lookahead = Lookahead::prompt;
  }
}

void read_gemma3_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_named_encoder(config, spec, read_siglip);
  const std::int64_t tokens = config.size_or({"mm_tokens_per_image"}, 256);
  const std::int64_t side = tower.embedding.image->image_size / tower.embedding.image->patch_size;
  const std::int64_t token_side = square_side(config, "mm_tokens_per_image", tokens);
  // The class's own default sizes do not divide; such a model is counted and does not run.
  if (side % token_side != 0) spec.not_run = "its visual tokens do not divide an image's patches";
  // The class's norm reads eps from vision_config.layer_norm_eps.
  const NormSpec norm{NormKind::rms_norm, false, tower.stack.norm.eps, NormWeight::one_plus};
  tower.projector.steps = {
      MergeStep{PatchMerge::mean, std::max<std::int64_t>(side / token_side, 1)},
      NormStep{"norm", norm}, LinearStep{"input", spec.hidden_size, false}};
  spec.tower = std::move(tower);
  spec.decoder->self_attention.lookahead = Lookahead::image;
  for (LayerVariant& variant : spec.decoder->variants) {
    variant.self_attention.lookahead = Lookahead::image;
  }
}

void read_mistral3_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_named_encoder(config, spec, read_pixtral);
  read_feature_layers(config, tower, -1);
  if (tower.projector.feature_layers.size() > 1) {
    config.fail("vision_feature_layer", "names several layers, but the projector's norm reads one",
                "name one layer");
  }
  tower.projector.rows = FeatureRows::patches;
  const double eps = spec.decoder->norm.eps;  // the class takes the text model's
  const std::int64_t merged = config.size_or({"spatial_merge_size"}, 2);
  tower.projector.steps = {NormStep{"norm", {NormKind::rms_norm, false, eps}},
                           MergeStep{PatchMerge::channel_major, merged},
                           LinearStep{"merger", tower.hidden_size, false}};
  add_two_layers(config, spec, config.flag_or({"multimodal_projector_bias"}, false),
                 tower.projector.steps);
  config.ignore({"vision_feature_select_strategy", "image_seq_length"});
  tower.rule = ImageRule::native;
  spec.tower = std::move(tower);
}

void read_idefics3_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_only_encoder(config, spec, read_idefics3_vision);
  tower.projector.steps = {MergeStep{PatchMerge::patch_major, config.size_or({"scale_factor"}, 2)},
                           LinearStep{"linear", spec.hidden_size, false}};
  config.ignore({"vocab_size", "do_image_splitting", "use_reentrant_checkpointing"});
  tower.rule = ImageRule::tiles_of_longer_side;
  spec.tower = std::move(tower);
}

void read_internvl_tower(ConfigReader& config, ModelSpec& spec) {
  TowerSpec tower = read_only_encoder(config, spec, read_internvl_vision);
  constexpr std::int64_t kLast = -1;  // its norm included
  const std::vector<std::int64_t> wanted = config.integers_or("vision_feature_layer", kLast);
  if (wanted.size() != 1) {
    config.fail("vision_feature_layer", "names several layers, but the projector reads one",
                "name one layer");
  }
  if (wanted.front() != kLast) read_feature_layers(config, tower, kLast);
  config.expect_text("vision_feature_select_strategy", "default");
  // Pixel shuffle: 1 / downsample_ratio patches a side become one.
  const std::int64_t side = read_merged_side(config, "downsample_ratio");
  tower.projector.steps = {MergeStep{PatchMerge::patch_major, side},
                           NormStep{"norm", {NormKind::layer_norm, true, 1e-5}}};
  add_two_layers(config, spec, true, tower.projector.steps);
  config.ignore({"image_seq_length"});
  tower.rule = ImageRule::tiles_by_aspect;
  spec.tower = std::move(tower);
}

}  // namespace headroom::detail
