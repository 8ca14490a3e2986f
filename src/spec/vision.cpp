#include "vision.h"

namespace headroom::detail {
namespace {

/// Collects the weights of one part.
class Tower {
 public:
  Tower(std::vector<CountedWeight>& weights, std::string path)
      : weights_(weights), path_(std::move(path)) {}

  void add(const std::string& name, std::vector<std::int64_t> shape, WeightRole role,
           std::int64_t repeat = 1) {
    weights_.push_back({path_ + "." + name, std::move(shape), role, repeat});
  }
  /// A weight [out, in] and its bias [out].
  void linear(const std::string& name, std::int64_t in, std::int64_t out, WeightRole role,
              std::int64_t repeat = 1) {
    add(name + ".weight", {out, in}, role, repeat);
    add(name + ".bias", {out}, role, repeat);
  }
  void layer_norm(const std::string& name, std::int64_t width, std::int64_t repeat = 1) {
    add(name + ".weight", {width}, WeightRole::norm, repeat);
    add(name + ".bias", {width}, WeightRole::norm, repeat);
  }
  /// Pre-norm layers with biases everywhere and a plain FFN.
  void layers(std::int64_t count, std::int64_t width, std::int64_t inner) {
    for (const char* const name : {"query", "key", "value", "output"}) {
      linear("layers.attention." + std::string(name), width, width, WeightRole::attention, count);
    }
    linear("layers.mlp.up", width, inner, WeightRole::mlp, count);
    linear("layers.mlp.down", inner, width, WeightRole::mlp, count);
    layer_norm("layers.attention_norm", width, count);
    layer_norm("layers.mlp_norm", width, count);
  }

 private:
  std::vector<CountedWeight>& weights_;
  std::string path_;
};

struct TowerSizes {
  std::int64_t width;
  std::int64_t inner;
  std::int64_t layers;
  std::int64_t patches;
  std::int64_t patch_elements;
};

TowerSizes read_sizes(ConfigReader& config, const TowerSizes& absent, std::int64_t image_size,
                      std::int64_t patch_size) {
  const std::int64_t side = config.size_or({"image_size"}, image_size);
  const std::int64_t patch = config.size_or({"patch_size"}, patch_size);
  const std::int64_t channels = config.size_or({"num_channels"}, 3);
  if (side % patch != 0) {
    config.fail("patch_size", "does not divide image_size", "use a divisor of image_size");
  }
  config.ignore({"model_type", "hidden_act", "layer_norm_eps", "norm_eps", "attention_dropout",
                 "num_attention_heads", "initializer_range", "torch_dtype", "dtype",
                 "vision_feature_layer", "vision_feature_select_strategy", "rope_theta",
                 "rope_parameters", "projector_dropout", "multi_modal_projector_bias",
                 "num_image_tokens", "projection_dim", "projector_hidden_act"});
  return {config.size_or({"hidden_size"}, absent.width),
          config.size_or({"intermediate_size"}, absent.inner),
          config.layers_or({"num_hidden_layers"}, absent.layers),
          product(config, "image_size", side / patch, side / patch),
          product(config, "patch_size", channels, product(config, "patch_size", patch, patch))};
}

/// SigLIP's pooling head: a learned query that attends to all patches.
void add_pooling_head(Tower& tower, const TowerSizes& sizes) {
  tower.add("head.probe", {sizes.width}, WeightRole::head);
  tower.linear("head.attention.qkv", sizes.width, 3 * sizes.width, WeightRole::attention);
  tower.linear("head.attention.output", sizes.width, sizes.width, WeightRole::attention);
  tower.layer_norm("head.norm", sizes.width);
  tower.linear("head.mlp.up", sizes.width, sizes.inner, WeightRole::mlp);
  tower.linear("head.mlp.down", sizes.inner, sizes.width, WeightRole::mlp);
}

}  // namespace

void count_siglip_tower(ConfigReader& config, ModelSpec& spec) {
  auto vision = config.object("vision_config");
  if (!vision) return;
  const TowerSizes sizes = read_sizes(*vision, {768, 3072, 12, 0, 0}, 224, 16);
  const bool pooled = vision->flag_or({"vision_use_head"}, true);
  vision->finish();
  Tower tower(spec.counted_only, "vision_tower");
  tower.linear("patch_embeddings", sizes.patch_elements, sizes.width, WeightRole::embedding);
  tower.add("position_embeddings.weight", {sizes.patches, sizes.width}, WeightRole::embedding);
  tower.layers(sizes.layers, sizes.width, sizes.inner);
  tower.layer_norm("final_norm", sizes.width);
  if (pooled) add_pooling_head(tower, sizes);
  Tower projector(spec.counted_only, "projector");
  projector.add("norm.weight", {sizes.width}, WeightRole::norm);
  projector.add("weight", {sizes.width, spec.hidden_size}, WeightRole::projector);
}

void count_llama4_tower(ConfigReader& config, ModelSpec& spec) {
  auto vision = config.object("vision_config");
  if (!vision) return;
  const TowerSizes sizes = read_sizes(*vision, {768, 5632, 34, 0, 0}, 448, 14);
  const std::int64_t input = vision->size_or({"projector_input_dim"}, 4096);
  const std::int64_t output = vision->size_or({"projector_output_dim"}, 4096);
  const std::int64_t to_text = vision->size_or({"vision_output_dim"}, 7680);
  vision->ignore({"pixel_shuffle_ratio"});  // patches merged into one; changes no weight
  vision->finish();
  Tower tower(spec.counted_only, "vision_tower");
  tower.add("patch_embeddings.weight", {sizes.width, sizes.patch_elements}, WeightRole::embedding);
  tower.add("class_token", {sizes.width}, WeightRole::embedding);
  tower.add("position_embeddings.weight", {sizes.patches + 1, sizes.width}, WeightRole::embedding);
  tower.layer_norm("first_norm", sizes.width);
  tower.layers(sizes.layers, sizes.width, sizes.inner);
  tower.layer_norm("final_norm", sizes.width);
  Tower projector(spec.counted_only, "projector");
  projector.add("up.weight", {input, sizes.inner}, WeightRole::mlp);
  projector.add("down.weight", {output, input}, WeightRole::mlp);
  projector.add("weight", {spec.hidden_size, to_text}, WeightRole::projector);
}

}  // namespace headroom::detail
