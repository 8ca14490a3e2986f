// Methods that convert weights when they are loaded: bitsandbytes, torchao, MLX.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "methods.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kHalfBits = 16;

/// MLX's format: "affine" stores a 16-bit scale and a 16-bit bias per group.
enum class MlxMode { affine, mxfp4, mxfp8, nvfp4 };

/// Words of 32 bits, which no kernel reads.
StorageFormat packed_by_mlx(StorageFormat format) {
  format.codes.reset();
  return format;
}

StorageFormat read_mlx_format(ConfigReader& config, std::int64_t bits, std::int64_t group) {
  const MlxMode mode = config.choice_or<MlxMode>({"mode"},
                                                 {{"affine", MlxMode::affine},
                                                  {"mxfp4", MlxMode::mxfp4},
                                                  {"mxfp8", MlxMode::mxfp8},
                                                  {"nvfp4", MlxMode::nvfp4}},
                                                 MlxMode::affine);
  switch (mode) {
    case MlxMode::mxfp4:
      return packed_by_mlx(mxfp4_format());
    case MlxMode::mxfp8:
      return packed_by_mlx(mxfp8_format());
    case MlxMode::nvfp4:
      return {"NVFP4", {.bits = 4}, {per_group(8, 16)}};  // MLX has no scale of a whole tensor
    case MlxMode::affine:
      break;
  }
  return {fmt::format("MLX {}-bit, groups of {}", bits, group),
          {.bits = bits, .word_bits = 32},
          {per_group(2 * kHalfBits, group)}};
}

std::int64_t mlx_bits(ConfigReader& config, std::int64_t otherwise) {
  const std::int64_t value = whole_number(config, {"bits"}, otherwise);
  if (value >= 2 && value <= 8) return value;
  config.fail("bits", fmt::format("{} bits are not supported", value), "write 2 to 8 bits");
}

StorageFormat row_scaled(std::string_view word) {
  return {fmt::format("{}, a scale per row", word), {.bits = 8}, {per_row(kHalfBits)}};
}

/// torchao's name of a configuration, as text or as {"default": {"_type": …, "_data": {…}}}.
struct TorchaoType {
  std::string name;
  std::int64_t group = 0;
};

TorchaoType read_torchao_type(ConfigReader& config) {
  if (config.is_text("quant_type")) {
    TorchaoType type{config.text_or({"quant_type"}, "")};
    if (auto given = config.object("quant_type_kwargs")) {
      type.group = group_size(*given, {"group_size"}, 0);
    }
    return type;
  }
  TorchaoType type;
  if (!config.is_object("quant_type")) return type;
  auto quant = config.object("quant_type");
  auto chosen = quant->is_object("default") ? quant->object("default") : quant;
  type.name = chosen->text_or({"_type"}, "");
  if (chosen->is_object("_data")) {
    auto data = chosen->object("_data");
    type.group = group_size(*data, {"group_size"}, 0);
  }
  return type;
}

struct TorchaoMethod {
  std::vector<std::string_view> names;
  StorageFormat format;
  std::optional<StatedType> activations{};
};

std::vector<TorchaoMethod> torchao_methods(std::int64_t group) {
  const std::int64_t own = group == 0 ? 128 : group;
  // Int4: scale and zero point of 16 bits each (torchao, quant_primitives.py, groupwise affine).
  const StorageFormat int4{
      fmt::format("INT4, groups of {}", own), {.bits = 4}, {per_group(2 * kHalfBits, own)}};
  return {{{"int4_weight_only", "Int4WeightOnlyConfig"}, int4},
          {{"int8_dynamic_activation_int4_weight", "Int8DynamicActivationInt4WeightConfig"},
           int4,
           StatedType::int8},
          {{"int8_weight_only", "Int8WeightOnlyConfig"}, row_scaled("INT8")},
          {{"int8_dynamic_activation_int8_weight", "Int8DynamicActivationInt8WeightConfig"},
           row_scaled("INT8"),
           StatedType::int8},
          {{"float8_weight_only", "Float8WeightOnlyConfig"}, row_scaled("FP8")},
          {{"float8_dynamic_activation_float8_weight", "Float8DynamicActivationFloat8WeightConfig"},
           row_scaled("FP8"),
           StatedType::float8}};
}

}  // namespace

// Source: transformers, quantizers/quantizer_bnb_4bit.py: every nn.Linear but the head and
// llm_int8_skip_modules; defaults of BitsAndBytesConfig: fp4, no nested scales.
WeightStorage read_bitsandbytes(ConfigReader& config) {
  WeightStorage storage{.plain_type = "float16"};
  keep_plain(storage, config.texts("llm_int8_skip_modules"));
  const bool four = config.flag_or({"load_in_4bit", "_load_in_4bit"}, false);
  std::vector<ModuleKind> kinds = linear_matrices();
  std::erase(kinds, ModuleKind::head);
  if (!four) {
    storage.rules.push_back({.format = int8_rows_format(), .kinds = std::move(kinds)});
    storage.activations = StatedType::int8;
    return storage;
  }
  const std::string word = config.choice_or<std::string>({"bnb_4bit_quant_type"},
                                                         {{"nf4", "NF4"}, {"fp4", "FP4"}}, "FP4");
  const bool nested = config.flag_or({"bnb_4bit_use_double_quant"}, false);
  storage.rules.push_back(
      {.format = bitsandbytes_4bit_format(word, nested ? BlockScales::nested : BlockScales::plain),
       .kinds = std::move(kinds)});
  return storage;
}

// Source: transformers, quantizers/quantizer_torchao.py: every nn.Linear but the head and
// modules_to_not_convert.
WeightStorage read_torchao(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  keep_plain(storage, config.texts("modules_to_not_convert"));
  const TorchaoType type = read_torchao_type(config);
  for (TorchaoMethod& method : torchao_methods(type.group)) {
    if (std::ranges::find(method.names, type.name) == method.names.end()) continue;
    storage.rules.push_back({.format = std::move(method.format), .kinds = layer_matrices()});
    storage.activations = method.activations;
    return storage;
  }
  storage.bytes_known = false;
  storage.notes.push_back(fmt::format(
      "quantization_config: torchao's \"{}\" is not known; counted in the unquantised type",
      type.name));
  return storage;
}

// Source: mlx_lm/utils.py, quantize_model: every Linear and Embedding whose input is a multiple of
// the group; entries named after modules give other bits, or false.
WeightStorage read_mlx(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  const std::int64_t bits = mlx_bits(config, 4);
  const std::int64_t group = group_size(config, {"group_size"}, 64);
  std::vector<ModuleKind> kinds = linear_matrices();
  kinds.push_back(ModuleKind::embedding);
  for (const std::string& module : config.keys()) {
    if (module.find('.') == std::string::npos && !config.is_object(module)) continue;
    StorageRule rule{.kinds = kinds, .patterns = {{module, PatternSyntax::words}}};
    if (config.is_object(module)) {
      auto own = config.object(module);
      const std::int64_t own_group = group_size(*own, {"group_size"}, group);
      rule.format = read_mlx_format(*own, mlx_bits(*own, bits), own_group);
    }
    storage.rules.push_back(std::move(rule));
  }
  storage.rules.push_back({.format = read_mlx_format(config, bits, group),
                           .kinds = kinds,
                           .input_multiple = std::max<std::int64_t>(1, group)});
  return storage;
}

}  // namespace headroom::detail
