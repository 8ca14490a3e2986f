// Conversions of a model's weights: "what if".
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gguf_mix.h"
#include "headroom/storage.h"
#include "quantization/formats.h"
#include "quantization/group_format.h"
#include "quantization/methods.h"
#include "visit.h"

namespace headroom {
namespace detail {
namespace {

constexpr std::int64_t kScale16 = 16;

/// The 16-bit type of what stays unquantised.
std::string half_type(const ModelSpec& spec) {
  return bits_of_plain_type(spec.torch_dtype) == 16 ? spec.torch_dtype : "bfloat16";
}

/// Matrices of the layers in `format`; embeddings, head, routers and norms in 16 bits.
WeightStorage layers_in(const ModelSpec& spec, StorageFormat format,
                        std::optional<StatedType> activations) {
  WeightStorage storage{.plain_type = half_type(spec), .activations = activations};
  storage.rules.push_back({.format = std::move(format), .kinds = layer_matrices()});
  return storage;
}

WeightStorage plain_storage(WeightType type) { return {.plain_type = std::string(name_of(type))}; }

bool has_experts(const StackSpec& stack) {
  const auto routed = [](const LayerVariant& variant) { return variant.ffn.experts.has_value(); };
  return stack.ffn.experts || std::ranges::any_of(stack.variants, routed);
}

/// As gpt-oss is published: experts in MXFP4 where there are any, else all matrices of the layers.
/// Runs hold them in ggml's blocks.
WeightStorage mxfp4_storage(const ModelSpec& spec) {
  StorageFormat blocks = mxfp4_format();
  blocks.codes.reset();
  WeightStorage storage = layers_in(spec, std::move(blocks), std::nullopt);
  if (has_experts(spec.main_stack())) storage.rules.front().kinds = {ModuleKind::experts};
  return storage;
}

/// llm-compressor's FP8_DYNAMIC and W8A8: a 16-bit scale per row.
StorageFormat rows_of(std::string_view word, GroupCodes codes) {
  return {fmt::format("{}, a scale per row", word), {.bits = 8}, {per_row(kScale16)}, codes};
}

/// GPTQ and AWQ: 4 bits, a 16-bit scale and a 4-bit zero point per 128 inputs.
StorageFormat int4_groups() {
  constexpr std::int64_t kGroup = 128;
  return {"INT4, groups of 128",
          {.bits = 4},
          {per_group(kScale16, kGroup), per_group(4, kGroup)},
          GroupCodes::four_bits};
}

WeightStorage recipe(const ModelSpec& spec, WeightType type) {
  switch (type) {
    case WeightType::float32:
    case WeightType::bfloat16:
    case WeightType::float16:
      return plain_storage(type);
    case WeightType::float8:
      return layers_in(spec, rows_of("FP8", GroupCodes::float8), StatedType::float8);
    case WeightType::int8:
      return layers_in(spec, rows_of("INT8", GroupCodes::int8), StatedType::int8);
    case WeightType::int4:
      return layers_in(spec, int4_groups(), std::nullopt);
    case WeightType::nf4:
      return layers_in(spec, bitsandbytes_4bit_format("NF4", BlockScales::nested), std::nullopt);
    case WeightType::mxfp4:
      return mxfp4_storage(spec);
    case WeightType::nvfp4:
      return layers_in(spec, nvfp4_format(2), StatedType::nvfp4);
    case WeightType::q8_0:
    case WeightType::q6_k:
    case WeightType::q5_k_m:
    case WeightType::q4_k_m:
    case WeightType::q4_0:
    case WeightType::q4_1:
    case WeightType::q5_0:
    case WeightType::q5_1:
    case WeightType::q2_k:
    case WeightType::q3_k_m:
    case WeightType::iq4_nl:
    case WeightType::iq4_xs:
      break;
  }
  return gguf_storage(spec, type);
}

WeightStorage recipe(const ModelSpec& spec, const WeightForm& form) {
  return std::visit(Overloaded{[&](WeightType type) { return recipe(spec, type); },
                               [&](const GroupFormat& groups) {
                                 return layers_in(spec, storage_format(groups), std::nullopt);
                               }},
                    form);
}

}  // namespace
}  // namespace detail

bool stores_mxfp8(const ModelSpec& spec) {
  return std::ranges::any_of(spec.storage.rules, [](const auto& rule) {
    return rule.format && detail::group_format_of(*rule.format) == kMxfp8;
  });
}

ModelSpec stored_as(ModelSpec spec, const WeightForm& form) {
  WeightStorage storage = detail::recipe(spec, form);
  storage.origin = fmt::format("converted to {}", name_of(form));
  storage.kv_cache = spec.storage.kv_cache;
  spec.storage = std::move(storage);
  spec.quantization.clear();
  return spec;
}

}  // namespace headroom
