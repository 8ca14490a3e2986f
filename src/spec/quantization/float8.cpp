// FP8 checkpoints with scales per block, tensor or row, and gpt-oss's MXFP4.
#include "methods.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kFloat32Scale = 32;

void require_known_float8(ConfigReader& config) {
  // Both have 8 bits; any other word could be another width.
  const bool known = config.choice_or<bool>({"fmt"},
                                            {{"e4m3", true},
                                             {"float8_e4m3fn", true},
                                             {"float8_e4m3", true},
                                             {"e5m2", true},
                                             {"float8_e5m2", true}},
                                            true);
  static_cast<void>(known);
}

/// float32 numbers that a matrix has once: its scale, and the scale of a statically quantised
/// input.
std::int64_t tensor_scales(ConfigReader& config) {
  return config.choice_or<std::int64_t>({"activation_scheme"}, {{"dynamic", 1}, {"static", 2}}, 1);
}

StorageFormat float8_of(ConfigReader& config) {
  const std::int64_t scales = tensor_scales(config);
  const std::vector<std::int64_t> block = config.counts("weight_block_size");
  if (block.empty()) return float8_format("a scale per tensor", {once(kFloat32Scale, scales)});
  if (block.size() != 2 || block[0] == 0 || block[1] == 0) {
    config.fail("weight_block_size", "expected two sizes", "write [rows, columns] of a block");
  }
  StorageFormat format = float8_blocks({block[0], block[1]});
  if (scales > 1) format.beside.push_back(once(kFloat32Scale));
  return format;
}

/// MiMo-V2.6 stores experts as 4-bit floats with an E8M0 scale per 32 inputs, and the rest in FP8
/// (SGLang, pull request 40448).
bool stores_fp4_experts(ConfigReader& config) {
  const bool fp4 =
      config.choice_or<bool>({"store_dtype"}, {{"mxfp4", true}, {"fp8", false}}, false);
  if (fp4) config.expect_number("mxfp4_block_size", 32);
  return fp4;
}

}  // namespace

// Source: transformers, integrations/finegrained_fp8.py: every nn.Linear but the head and
// modules_to_not_convert gets weight_scale_inv, float32 per block. Routers of the published
// families are parameters, not nn.Linear (DeepseekV3TopkRouter), or stand in the list. The
// projection of DeepSeek-V3.2's indexer keeps its type (its inference/model.py, weights_proj).
WeightStorage read_fp8(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  require_known_float8(config);
  keep_plain(storage, config.texts("modules_to_not_convert"));
  keep_plain(storage, config.texts("ignored_layers"));
  storage.rules.push_back({.kinds = layer_matrices(), .weights = {"indexer.weights.weight"}});
  // NVIDIA's DeepSeek-V4 stores experts anew, beside the FP8 of the original.
  if (config.is_object("quantized_layers")) read_quantized_layers(config, storage);
  if (stores_fp4_experts(config)) {
    storage.rules.push_back({.format = mxfp4_format(), .kinds = {ModuleKind::experts}});
  }
  storage.rules.push_back({.format = float8_of(config), .kinds = layer_matrices()});
  storage.activations = StatedType::float8;
  return storage;
}

// Source: transformers, integrations/fbgemm_fp8.py: weight_scale [out, 1] in float32; the bound of
// input scales is not saved.
WeightStorage read_fbgemm_fp8(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  keep_plain(storage, config.texts("modules_to_not_convert"));
  storage.rules.push_back({.format = float8_format("a scale per row", {per_row(kFloat32Scale)}),
                           .kinds = layer_matrices()});
  storage.activations = StatedType::float8;
  return storage;
}

// Source: transformers, integrations/mxfp4.py replaces the experts' stacked projections by _blocks
// and _scales and nothing else; their biases stay in 16 bits.
WeightStorage read_mxfp4(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  keep_plain(storage, config.texts("modules_to_not_convert"));
  storage.rules.push_back({.format = mxfp4_format(), .kinds = {ModuleKind::experts}});
  return storage;
}

}  // namespace headroom::detail
