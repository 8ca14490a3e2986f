// NVIDIA ModelOpt: quantization_config of config.json, and hf_quant_config.json beside it.
// Source: modelopt/torch/export/unified_export_hf.py and quant_utils.py; vLLM, modelopt.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "methods.h"
#include "stated_types.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kFloat32Number = 32;
constexpr std::int64_t kHalf = 16;

/// One algorithm: format of a matrix, type of the inputs in its GEMMs.
struct Algorithm {
  StorageFormat format;
  std::optional<StatedType> activations{};
};

/// AWQ divides the inputs by a 16-bit scale each (pre_quant_scale).
StoredNumbers input_scales() { return {.bits = kHalf, .block = {0, 1}}; }

Algorithm nvfp4(std::int64_t tensor_scales, std::optional<StatedType> activations) {
  return {nvfp4_format(tensor_scales), activations};
}

/// No kernel divides the inputs.
Algorithm with_input_scales(Algorithm algorithm) {
  algorithm.format.codes.reset();
  algorithm.format.name += ", AWQ";
  algorithm.format.beside.push_back(input_scales());
  return algorithm;
}

Algorithm int4_awq(std::int64_t group, std::optional<StatedType> activations) {
  return with_input_scales({{fmt::format("INT4, groups of {}", group),
                             {.bits = 4, .along = PackedAlong::out},
                             {per_group(kHalf, group)}},
                            activations});
}

Algorithm smooth_int8() {
  return {{"INT8, a scale per row",
           {.bits = 8},
           {per_row(kFloat32Number), once(kFloat32Number), input_scales()}},
          StatedType::int8};
}

/// GEMMs whose inputs differ in type, which are predicted with one.
std::string note_on_inputs(const std::set<std::optional<StatedType>>& inputs, StatedType chosen) {
  std::vector<std::string_view> names;
  names.reserve(inputs.size());
  for (const auto& input : inputs) names.push_back(input ? name_of(*input) : "16-bit floats");
  return fmt::format("the inputs of the quantised layers' GEMMs are {}; times take {} for all",
                     fmt::join(names, " or "), name_of(chosen));
}

/// The algorithm named at `key`. A static input scale is stored as float32 beside the weight.
Algorithm read_algorithm(ConfigReader& config, std::string_view key) {
  const std::int64_t group = group_size(config, {"group_size"}, 128);
  const Algorithm float8{float8_format("a scale per tensor", {once(kFloat32Number, 2)}),
                         StatedType::float8};
  const Algorithm float8_rows{float8_format("a scale per row", {per_row(kFloat32Number)}),
                              StatedType::float8};
  const Algorithm awq = int4_awq(group, std::nullopt);
  return config.choice_or<Algorithm>({key},
                                     {{"FP8", float8},
                                      {"FP8_PER_CHANNEL_PER_TOKEN", float8_rows},
                                      {"FP8_PB_WO", {float8_blocks({128, 128})}},
                                      {"NVFP4", nvfp4(2, StatedType::nvfp4)},
                                      {"NVFP4_AWQ", with_input_scales(nvfp4(2, StatedType::nvfp4))},
                                      {"W4A16_NVFP4", nvfp4(1, std::nullopt)},
                                      {"W4A8_NVFP4_FP8", nvfp4(2, StatedType::float8)},
                                      {"MXFP8", {mxfp8_format(), StatedType::mxfp8}},
                                      {"MXFP4", {mxfp4_format(), StatedType::mxfp4}},
                                      {"W4A8_MXFP4_FP8", {mxfp4_format(), StatedType::float8}},
                                      {"W4A16_AWQ", awq},
                                      {"INT4_AWQ", awq},
                                      {"W4A8_AWQ", int4_awq(group, StatedType::float8)},
                                      {"W8A8_SQ_PER_CHANNEL", smooth_int8()},
                                      {"INT8_SQ", smooth_int8()}},
                                     {});
}

}  // namespace

void read_quantized_layers(ConfigReader& config, WeightStorage& storage) {
  auto layers = config.object("quantized_layers");
  if (!layers) {
    config.fail("quantized_layers", "is missing, and MIXED_PRECISION needs it",
                "add the algorithm of every quantised module");
  }
  std::map<std::string, StorageRule> rules;
  std::set<std::optional<StatedType>> inputs;
  for (const std::string& module : layers->keys()) {
    auto layer = layers->object(module);
    const std::string algo = layer->text_or({"quant_algo"}, "");
    StorageRule& rule = rules[fmt::format("{} {}", algo, group_size(*layer, {"group_size"}, 128))];
    if (!rule.format) {
      Algorithm algorithm = read_algorithm(*layer, "quant_algo");
      rule.format = std::move(algorithm.format);
      rule.kinds = all_matrices();
      inputs.insert(algorithm.activations);
      if (!storage.activations) storage.activations = algorithm.activations;
    }
    rule.patterns.push_back(pattern_of(module));
  }
  if (inputs.size() > 1) storage.notes.push_back(note_on_inputs(inputs, *storage.activations));
  for (auto& [name, rule] : rules) storage.rules.push_back(std::move(rule));
}

// Head and routers are never quantised unless named (modelopt/torch/quantization/config.py,
// _default_disabled_quantizer_cfg: "*lm_head*", "*router*", "*mlp.gate.*",
// "*block_sparse_moe.gate*", "*mlp.shared_expert_gate.*").
WeightStorage read_modelopt(ConfigReader& file) {
  auto nested = file.is_object("quantization") ? file.object("quantization") : std::nullopt;
  ConfigReader& config = nested ? *nested : file;
  WeightStorage storage{.plain_type = "bfloat16"};
  storage.kv_cache = read_kv_cache_type(config);
  keep_plain(storage, config.texts("exclude_modules"));
  keep_plain(storage, config.texts("ignore"));
  const std::string algo = config.text_or({"quant_algo"}, "");
  if (algo.empty()) {
    config.fail("quant_algo", "is missing", "name ModelOpt's algorithm, such as \"NVFP4\"");
  }
  if (algo == "MIXED_PRECISION") {
    read_quantized_layers(config, storage);
    return storage;
  }
  Algorithm algorithm = read_algorithm(config, "quant_algo");
  storage.rules.push_back({.format = std::move(algorithm.format), .kinds = layer_matrices()});
  storage.activations = algorithm.activations;
  return storage;
}

}  // namespace headroom::detail
