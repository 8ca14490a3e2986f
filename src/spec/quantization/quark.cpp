// AMD Quark.
// Source: transformers, quantizers/quantizer_quark.py; vLLM, quark.py (schemes and layer configs).
#include <fmt/format.h>

#include <array>
#include <utility>

#include "methods.h"
#include "stated_types.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kFloatScale = 32;

/// A type of Quark: bits, its word on screen, the type that GEMMs then use, its codes.
struct QuarkType {
  std::int64_t bits = 16;
  std::string_view word{};
  std::optional<StatedType> stated{};
  std::optional<GroupCodes> codes{};
};

QuarkType read_type(ConfigReader& spec) {
  return spec.choice_or<QuarkType>(
      {"dtype"},
      {{"fp8_e4m3", {8, "FP8", StatedType::float8, GroupCodes::float8}},
       {"fp8_e5m2", {8, "FP8", StatedType::float8, GroupCodes::float8}},
       {"int8", {8, "INT8", StatedType::int8, GroupCodes::int8}},
       {"uint8", {8, "INT8", StatedType::int8, GroupCodes::int8}},
       {"int4", {4, "INT4", StatedType::int4, GroupCodes::four_bits}},
       {"uint4", {4, "INT4", StatedType::int4, GroupCodes::four_bits}},
       {"fp4", {4, "FP4", StatedType::float4, GroupCodes::four_bits}},
       {"mx", {4, "FP4", StatedType::mxfp4, GroupCodes::four_bits}},
       {"mxfp4", {4, "FP4", StatedType::mxfp4, GroupCodes::four_bits}},
       {"bfloat16", {16, "BF16", std::nullopt}},
       {"float16", {16, "F16", std::nullopt}}},
      {});
}

enum class Grain { tensor, channel, group };

/// Format of weights: {"dtype", "qscheme", "group_size", "scale_format", "symmetric"}.
std::optional<StorageFormat> read_weight_format(ConfigReader& spec) {
  const QuarkType type = read_type(spec);
  if (type.bits >= 16) return std::nullopt;
  const std::int64_t group = group_size(spec, {"group_size"}, 0);
  const Grain grain = spec.choice_or<Grain>(
      {"qscheme"},
      {{"per_tensor", Grain::tensor}, {"per_channel", Grain::channel}, {"per_group", Grain::group}},
      Grain::tensor);
  if (spec.text_or({"scale_format"}, "") == "e8m0") {
    StorageFormat format = type.bits == 4 ? mxfp4_format() : mxfp8_format();
    format.beside.front().block.in = group == 0 ? 32 : group;
    return format;
  }
  StoredNumbers scale = once(kFloatScale);
  std::string words = "a scale per tensor";
  if (grain == Grain::channel) {
    scale = per_row(kFloatScale);
    words = "a scale per row";
  } else if (grain == Grain::group) {
    scale = per_group(kFloatScale, group);
    words = fmt::format("groups of {}", group);
  }
  StorageFormat format{
      fmt::format("{}, {}", type.word, words), {.bits = type.bits}, {scale}, type.codes};
  if (!spec.flag_or({"symmetric"}, true)) {
    scale.bits = type.bits;
    format.beside.push_back(scale);
  }
  return format;
}

/// A layer config's rule; a static input scale is one float32 per layer.
StorageRule read_layer(ConfigReader& layer, WeightStorage& storage) {
  StorageRule rule{.kinds = layer_matrices()};
  if (layer.is_object("weight")) {
    auto weight = layer.object("weight");
    rule.format = read_weight_format(*weight);
  }
  if (!layer.is_object("input_tensors")) return rule;
  auto inputs = layer.object("input_tensors");
  if (!storage.activations) storage.activations = read_type(*inputs).stated;
  if (rule.format && !inputs->flag_or({"is_dynamic"}, false)) {
    rule.format->beside.push_back(once(kFloatScale));
  }
  return rule;
}

}  // namespace

WeightStorage read_quark(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  keep_plain(storage, config.texts("exclude"));
  if (auto layers = config.object("layer_quant_config")) {
    for (const std::string& pattern : layers->keys()) {
      if (!layers->is_object(pattern)) continue;
      auto layer = layers->object(pattern);
      StorageRule rule = read_layer(*layer, storage);
      rule.kinds = all_matrices();
      rule.patterns = {pattern_of(pattern)};
      storage.rules.push_back(std::move(rule));
    }
  }
  if (auto all = config.object("global_quant_config")) {
    storage.rules.push_back(read_layer(*all, storage));
  }
  if (config.is_object("kv_cache_quant_config")) {
    auto caches = config.object("kv_cache_quant_config");
    for (const std::string& name : caches->keys()) {
      if (!caches->is_object(name) || storage.kv_cache) continue;
      auto cache = caches->object(name);
      if (!cache->is_object("output_tensors")) continue;
      auto values = cache->object("output_tensors");
      storage.kv_cache = read_type(*values).stated;
    }
  }
  return storage;
}

}  // namespace headroom::detail
