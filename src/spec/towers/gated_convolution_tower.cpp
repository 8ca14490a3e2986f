// LFM3-VL's tower: gated convolutions over the grid of patches, and attention in some layers;
// counted.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

struct Sizes {
  std::int64_t width = 0;
  std::int64_t inner = 0;
  std::int64_t kernel = 0;
  std::int64_t kv_width = 0;
  std::int64_t head_dim = 0;
};

/// Layers with attention: those that layer_types names; without it, every second one from the third
/// on.
std::int64_t read_attention_layers(ConfigReader& vision, std::int64_t layers) {
  const std::vector<std::string> types = vision.texts("layer_types");
  if (types.empty()) return std::max<std::int64_t>(layers - 1, 0) / 2;
  vision.require_one_per_layer("layer_types", types.size(), layers,
                               "name each of num_hidden_layers");
  const auto other = std::ranges::find_if(
      types, [](const std::string& type) { return type != "conv" && type != "full_attention"; });
  if (other != types.end()) {
    vision.fail("layer_types", fmt::format("\"{}\" is unknown", *other),
                "use conv or full_attention");
  }
  return std::ranges::count(types, "full_attention");
}

Sizes read_sizes(ConfigReader& vision) {
  Sizes sizes;
  sizes.width = vision.size_or({"hidden_size"}, 1024);
  sizes.inner = vision.size_or({"intermediate_size"}, 2560);
  sizes.kernel = vision.size_or({"conv_kernel_size"}, 3);
  const std::int64_t heads = vision.size_or({"num_attention_heads"}, 16);
  const std::int64_t kv_heads = vision.size_or({"num_key_value_heads"}, 8);
  if (sizes.width % heads != 0) {
    vision.fail("num_attention_heads", "does not divide hidden_size", "use a divisor of it");
  }
  if (heads % kv_heads != 0) {
    vision.fail("num_key_value_heads", "does not divide num_attention_heads",
                "use a divisor of it");
  }
  sizes.head_dim = sizes.width / heads;
  sizes.kv_width = kv_heads * sizes.head_dim;
  return sizes;
}

void add_convolutions(TowerWeights& tower, ConfigReader& vision, const Sizes& sizes,
                      std::int64_t layers) {
  const std::int64_t width = sizes.width;
  tower.linear_if(false, "convolution.in", width, product(vision, "hidden_size", 3, width),
                  WeightRole::convolution, layers);
  tower.add("convolution.weight", {width, 1, sizes.kernel, sizes.kernel}, WeightRole::convolution,
            layers);
  tower.linear_if(false, "convolution.out", width, width, WeightRole::convolution, layers);
}

void add_attention(TowerWeights& tower, const Sizes& sizes, std::int64_t layers) {
  const std::int64_t width = sizes.width;
  for (const auto& [name, out] : {std::pair{"query", width}, std::pair{"key", sizes.kv_width},
                                  std::pair{"value", sizes.kv_width}, std::pair{"output", width}}) {
    tower.linear_if(false, std::string("attention.") + name, width, out, WeightRole::attention,
                    layers);
  }
  for (const char* const name : {"attention.query_norm", "attention.key_norm"}) {
    tower.norm(NormKind::rms_norm, name, sizes.head_dim, layers);
  }
}

void add_layers(TowerWeights& tower, ConfigReader& vision, const Sizes& sizes,
                std::int64_t layers) {
  const std::int64_t attending = read_attention_layers(vision, layers);
  add_convolutions(tower, vision, sizes, layers - attending);
  add_attention(tower, sizes, attending);
  for (const char* const name : {"mlp.gate", "mlp.up"}) {
    tower.linear_if(false, name, sizes.width, sizes.inner, WeightRole::mlp, layers);
  }
  tower.linear_if(false, "mlp.down", sizes.inner, sizes.width, WeightRole::mlp, layers);
  for (const char* const name : {"mixer_norm", "mlp_norm"}) {
    tower.norm(NormKind::rms_norm, name, sizes.width, layers);
  }
}

}  // namespace

void count_lfm3_vl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const Sizes sizes = read_sizes(vision);
  const std::int64_t patch = vision.size_or({"patch_size"}, 16);
  const std::int64_t frames = vision.size_or({"temporal_patch_size"}, 2);
  const std::int64_t elements =
      product(vision, "patch_size",
              product(vision, "in_channels", vision.size_or({"in_channels"}, 3), frames),
              product(vision, "patch_size", patch, patch));
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear_if(false, "patch_embeddings", elements, sizes.width, WeightRole::embedding);
  tower.norm(NormKind::rms_norm, "embedding_norm", sizes.width);
  add_layers(tower, vision, sizes, vision.layers_or({"num_hidden_layers"}, 14));
  const std::int64_t side = vision.size_or({"spatial_merge_size"}, 2);
  const std::int64_t merged = product(
      vision, "hidden_size", product(vision, "spatial_merge_size", side, side), sizes.width);
  const std::int64_t inner = config.size_or({"projector_hidden_size"}, 4096);
  const bool bias = config.flag_or({"projector_bias"}, true);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::layer_norm, "norm", sizes.width);
  projector.linear_if(bias, "up", merged, inner, WeightRole::projector);
  projector.linear_if(bias, "down", inner, spec.hidden_size, WeightRole::projector);
  vision.ignore({"norm_eps"});
  ignore_tower_keys(vision);
  vision.finish();
  config.ignore({"projector_hidden_act"});
}

}  // namespace headroom::detail
