#include "quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "json_text.h"
#include "methods.h"

namespace headroom::detail {
namespace {

/// A method by the words of `quant_method`, and its reader.
struct Method {
  std::string_view name;
  WeightStorage (*read)(ConfigReader& config);
};

constexpr std::array kMethods{
    Method{"fp8", read_fp8},
    Method{"fbgemm_fp8", read_fbgemm_fp8},
    Method{"mxfp4", read_mxfp4},
    Method{"modelopt", read_modelopt},
    Method{"modelopt_fp4", read_modelopt},
    Method{"modelopt_mixed", read_modelopt},
    Method{"compressed-tensors", read_compressed_tensors},
    Method{"quark", read_quark},
    Method{"awq", read_awq},
    Method{"gptq", read_gptq},
    Method{"auto-round", read_gptq},  // GPTQ's tensors, whose packing_format tells the zero points
    Method{"bitsandbytes", read_bitsandbytes},
    Method{"hqq", read_hqq},
    Method{"torchao", read_torchao},
    Method{"intel/auto-round", read_gptq},
    Method{"exl2", read_exl2},
    Method{"exl3", read_exl3},
    Method{"bitnet", read_bitnet_weights},
};

/// The method that `config` names. Old bitsandbytes and MLX configs name none.
std::string method_name(ConfigReader& config) {
  std::string name = config.text_or({"quant_method"}, "");
  if (!name.empty()) return name;
  if (config.has("load_in_4bit") || config.has("load_in_8bit")) return "bitsandbytes";
  if (config.has("quant_algo") || config.is_object("quantization")) return "modelopt";
  if (config.has("config_groups")) return "compressed-tensors";
  if (config.has("bits") && config.has("group_size")) return "mlx";
  return config.text_or({"quant_type"}, "an unnamed method");
}

/// The score bias of DeepSeek-V3's routers, which serves top-k only, is stored in float32 beside
/// weights of every type: with it the tensors of DeepSeek-V3 sum to the published files.
StorageRule float32_router_bias() {
  return {.format = plain_format("float32"),
          .kinds = {ModuleKind::other},
          .weights = {"router.correction_bias"}};
}

WeightStorage read_method(ConfigReader& config, const std::string& name) {
  if (name == "mlx") return read_mlx(config);
  const auto* const method = std::ranges::find(kMethods, name, &Method::name);
  if (method != kMethods.end()) return method->read(config);
  WeightStorage unknown{.bytes_known = false};
  unknown.notes.push_back(
      fmt::format("quantization_config: the method \"{}\" is not known; weights are counted in the "
                  "unquantised type",
                  name));
  return unknown;
}

/// Stores float32 scales per block as their exponents, E8M0.
void store_exponents(StorageFormat& format) {
  for (StoredNumbers& scales : format.beside) {
    const bool per_block = scales.block.out > 1 && scales.block.in > 1;
    if (!per_block) continue;
    format = float8_power_blocks(scales.block);
    return;
  }
}

/// Puts the rules of the model's family first. `config` is the quantisation's object.
void add_family_storage(ConfigReader& config, const WeightStorage& family, WeightStorage& storage) {
  storage.rules.insert(storage.rules.begin(), family.rules.begin(), family.rules.end());
  const bool powers = config.is_text("scale_fmt", "ue8m0");
  if (!powers || family.block_scales == BlockScaleStorage::float32) return;
  for (StorageRule& rule : storage.rules) {
    if (rule.format) store_exponents(*rule.format);
  }
}

/// Returns whether ModelOpt's list of layers states how they are stored.
bool stores_layers_anew(ConfigReader& config) {
  if (!config.is_object("quantization_config")) return false;
  return config.object("quantization_config")->is_object("quantized_layers");
}

/// Reads the quantisation that the model states in its own keys.
void read_model_keys(ConfigReader& config, WeightStorage& storage) {
  // DeepSeek-V4: FP8, but experts in 4-bit floats with an E8M0 scale per 32 inputs, unless stored
  // anew.
  const bool fp4 = config.choice_or<bool>({"expert_dtype"}, {{"fp4", true}, {"fp8", false}}, false);
  if (fp4 && !stores_layers_anew(config)) {
    storage.rules.insert(storage.rules.begin(),
                         {.format = mxfp4_format(), .kinds = {ModuleKind::experts}});
  }
  // MLX: the tower stays as it is.
  if (!config.is_object("vision_config")) return;
  auto vision = config.object("vision_config");
  if (!vision->flag_or({"skip_vision"}, false)) return;
  for (StorageRule& rule : storage.rules) std::erase(rule.kinds, ModuleKind::tower);
}

}  // namespace

void read_quantization(ConfigReader& config, ModelSpec& spec) {
  // MLX writes the same object under two keys.
  for (const std::string_view key : {"quantization_config", "quantization", "compression_config"}) {
    const bool is_method = key == "quantization_config";
    if (!is_method && config.has(key) && !config.is_object(key)) {
      config.ignore({key});
      spec.storage.notes.push_back(
          fmt::format("{} is not an object; weights are counted in the unquantised type", key));
      continue;
    }
    auto quantization = config.object(key);
    const bool states_none = !quantization || quantization->keys().empty();
    if (states_none || !spec.quantization.empty()) continue;
    spec.quantization = method_name(*quantization);
    const WeightStorage family = std::exchange(spec.storage, {});
    spec.storage = read_method(*quantization, spec.quantization);
    add_family_storage(*quantization, family, spec.storage);
    spec.storage.rules.push_back(float32_router_bias());
    read_model_keys(config, spec.storage);
    spec.storage.origin = fmt::format("{}: {}", key, spec.quantization);
  }
}

void read_quantization_file(std::string_view json, const std::string& file, ModelSpec& spec) {
  const nlohmann::json document = parse_json(json, file);
  ConfigReader config(document, file);
  WeightStorage stated = read_modelopt(config);
  stated.rules.push_back(float32_router_bias());
  if (spec.quantization.empty()) {
    spec.quantization = "modelopt";
    if (!spec.torch_dtype.empty()) stated.plain_type = spec.torch_dtype;
    spec.storage = std::move(stated);
    spec.storage.origin = "hf_quant_config.json: modelopt";
    return;
  }
  if (!spec.storage.kv_cache) spec.storage.kv_cache = stated.kv_cache;
  if (!spec.storage.activations) spec.storage.activations = stated.activations;
}

}  // namespace headroom::detail
