#include "tower_weights.h"

#include <array>
#include <utility>

namespace headroom::detail {
namespace {

std::string path_of(ModelPart part) {
  switch (part) {
    case ModelPart::text:
      return "text";
    case ModelPart::vision:
      return "vision_tower";
    case ModelPart::audio:
      return "audio_tower";
    case ModelPart::adapter:
      return "adapter";
    case ModelPart::projector:
      break;
  }
  return "projector";
}

}  // namespace

TowerWeights::TowerWeights(ModelSpec& spec, ModelPart part, CountedUse use)
    : weights_(spec.counted_only), part_(part), use_(use), path_(path_of(part)) {}

void TowerWeights::add(const std::string& name, std::vector<std::int64_t> shape, WeightRole role,
                       std::int64_t repeat) {
  weights_.push_back({path_ + "." + name, std::move(shape), role, repeat, part_, use_});
}

void TowerWeights::linear(const std::string& name, std::int64_t in, std::int64_t out,
                          WeightRole role, std::int64_t repeat) {
  linear_if(true, name, in, out, role, repeat);
}

void TowerWeights::linear_if(bool bias, const std::string& name, std::int64_t in, std::int64_t out,
                             WeightRole role, std::int64_t repeat) {
  add(name + ".weight", {out, in}, role, repeat);
  if (bias) add(name + ".bias", {out}, role, repeat);
}

void TowerWeights::norm(NormKind kind, const std::string& name, std::int64_t width,
                        std::int64_t repeat) {
  add(name + ".weight", {width}, WeightRole::norm, repeat);
  if (kind == NormKind::layer_norm) add(name + ".bias", {width}, WeightRole::norm, repeat);
}

void TowerWeights::layers(const TowerLayers& layers) {
  const std::int64_t heads = layers.heads_width == 0 ? layers.width : layers.heads_width;
  const auto project = [&](const char* name, bool bias) {
    linear_if(bias, layers.path + ".attention." + name, layers.width, heads, WeightRole::attention,
              layers.count);
  };
  project("query", layers.qkv_bias);
  project("key", layers.qkv_bias);
  project("value", layers.qkv_bias);
  linear_if(layers.output_bias, layers.path + ".attention.output", heads, layers.width,
            WeightRole::attention, layers.count);
  const bool gated = layers.ffn == FfnKind::gated;
  for (const char* const name : {".mlp.gate", ".mlp.up"}) {
    if (!gated && std::string_view(name).ends_with("gate")) continue;
    linear_if(layers.ffn_bias, layers.path + name, layers.width, layers.inner, WeightRole::mlp,
              layers.count);
  }
  linear_if(layers.ffn_bias, layers.path + ".mlp.down", layers.inner, layers.width, WeightRole::mlp,
            layers.count);
  norm(layers.norm, layers.path + ".attention_norm", layers.width, layers.count);
  norm(layers.norm, layers.path + ".mlp_norm", layers.width, layers.count);
}

void add_pooling_head(ModelSpec& spec, std::int64_t width, std::int64_t inner) {
  TowerWeights head(spec, ModelPart::vision, CountedUse::loaded);
  head.add("head.probe", {width}, WeightRole::head);
  for (const char* const projection : {"query", "key", "value", "output"}) {
    head.linear(std::string("head.cross_attention.") + projection, width, width,
                WeightRole::attention);
  }
  head.norm(NormKind::layer_norm, "head.norm", width);
  head.linear("head.mlp.up", width, inner, WeightRole::mlp);
  head.linear("head.mlp.down", inner, width, WeightRole::mlp);
}

std::int64_t read_merged_side(ConfigReader& config, std::string_view key) {
  constexpr double kLeast = 1.0 / 1024;
  const double ratio = config.number_or({key}, 0.5);
  if (!(ratio >= kLeast && ratio <= 1)) {
    config.fail(key, "is not between 1/1024 and 1", "use 1 over the patches of a side");
  }
  return static_cast<std::int64_t>(1 / ratio);
}

PatchGrid read_patch_grid(ConfigReader& vision, std::string_view channels_key,
                          std::int64_t image_size, std::int64_t patch_size) {
  const std::array<std::int64_t, 2> image = vision.sides_or("image_size", image_size);
  const std::array<std::int64_t, 2> patch = vision.sides_or("patch_size", patch_size);
  const std::int64_t channels = vision.size_or({channels_key}, 3);
  // A convolution of this stride leaves the pixels beyond the last whole patch unread.
  const std::int64_t rows = image[0] / patch[0];
  const std::int64_t columns = image[1] / patch[1];
  if (rows == 0 || columns == 0) {
    vision.fail("patch_size", "exceeds image_size", "use a smaller patch_size");
  }
  return {
      product(vision, "image_size", rows, columns),
      product(vision, "patch_size", channels, product(vision, "patch_size", patch[0], patch[1]))};
}

ImageSpec read_square_image(ConfigReader& vision, std::string_view channels_key,
                            std::int64_t image_size, std::int64_t patch_size) {
  const PatchGrid grid = read_patch_grid(vision, channels_key, image_size, patch_size);
  const auto image = vision.sides_or("image_size", image_size);
  const auto patch = vision.sides_or("patch_size", patch_size);
  if (image[0] != image[1] || patch[0] != patch[1]) {
    vision.fail("image_size", "has sides that differ", "use square images and patches");
  }
  ImageSpec spec;
  spec.image_size = image[0];
  spec.patch_size = patch[0];
  spec.num_channels = grid.elements / (patch[0] * patch[0]);
  spec.prefix = PrefixTokens::none;
  return spec;
}

double read_axial_theta(ConfigReader& vision, double absent) {
  double theta = vision.number_or({"rope_theta"}, absent);
  if (auto rope = vision.object("rope_parameters")) {
    theta = rope->number_or({"rope_theta"}, theta);
    // Angles of rows and of columns, which these encoders have under either name.
    const bool axial = rope->is_text("rope_type", "axial");
    rope->expect_text("rope_type", axial ? "axial" : "default");
    rope->finish();
  }
  return theta;
}

void ignore_tower_keys(ConfigReader& tower) {
  const bool divides_width = tower.has("num_attention_heads") && !tower.has("head_dim");
  if (divides_width && tower.has("hidden_size") &&
      tower.size({"hidden_size"}) % tower.size({"num_attention_heads"}) != 0) {
    tower.fail("num_attention_heads", "does not divide hidden_size", "use a divisor");
  }
  tower.ignore({"model_type",
                "hidden_act",
                "hidden_activation",
                "layer_norm_eps",
                "rms_norm_eps",
                "norm_eps",
                "attention_dropout",
                "hidden_dropout_prob",
                "hidden_dropout",
                "projection_dropout",
                "projector_dropout",
                "num_attention_heads",
                "num_heads",
                "num_key_value_heads",
                "head_dim",
                "initializer_range",
                "torch_dtype",
                "dtype",
                "rope_theta",
                "rope_scaling",
                "rope_parameters",
                "max_position_embeddings",
                "vision_feature_layer",
                "vision_feature_select_strategy",
                "multi_modal_projector_bias",
                "num_image_tokens",
                "projection_dim",
                "projector_hidden_act",
                "vocab_size",
                "image_seq_length",
                "num_labels"});
}

}  // namespace headroom::detail
