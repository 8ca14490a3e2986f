// Weight-only integers: AWQ, GPTQ, HQQ, and EXL2's mix.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "methods.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kScaleOf16 = 16;

std::int64_t packed_bits(ConfigReader& config, ConfigReader::Keys keys) {
  const std::int64_t value = whole_number(config, keys, 4);
  if (value >= 1 && value <= 8) return value;
  config.fail(*keys.begin(), fmt::format("{} bits are not supported", value), "write 1 to 8 bits");
}

/// GPTQModel's "dynamic": "-:regex" leaves modules out, "+:regex" or "regex" gives other bits.
void read_dynamic(ConfigReader& config, std::int64_t bits, std::int64_t group,
                  WeightStorage& storage) {
  if (!config.is_object("dynamic")) return;
  auto dynamic = config.object("dynamic");
  for (const std::string& key : dynamic->keys()) {
    const bool leaves_out = key.starts_with("-:");
    const std::string regex = leaves_out || key.starts_with("+:") ? key.substr(2) : key;
    StorageRule rule{.kinds = all_matrices(), .patterns = {{regex, PatternSyntax::regex}}};
    if (!leaves_out) {
      auto own = dynamic->object(key);
      rule.format = packed_integer_format(WordLayout::gptq, whole_number(*own, {"bits"}, bits),
                                          group_size(*own, {"group_size"}, group));
    }
    storage.rules.push_back(std::move(rule));
  }
}

}  // namespace

// Source: transformers, integrations/awq.py: every nn.Linear of the layers but
// modules_to_not_convert; the head stays. AutoAWQ never quantises routers
// (awq/models/mixtral.py, "modules_to_not_convert": ["gate"]).
WeightStorage read_awq(ConfigReader& config) {
  WeightStorage storage{.plain_type = "float16"};
  keep_plain(storage, config.texts("modules_to_not_convert"));
  storage.rules.push_back(
      {.format = packed_integer_format(WordLayout::awq, packed_bits(config, {"bits", "w_bit"}),
                                       group_size(config, {"group_size", "q_group_size"}, 128)),
       .kinds = layer_matrices()});
  return storage;
}

// Source: optimum/gptq/quantizer.py: modules inside the blocks; the head only with "lm_head".
// AutoGPTQ and GPTQModel list the matrices of a layer (inside_layer_modules) without routers.
WeightStorage read_gptq(ConfigReader& config) {
  WeightStorage storage{.plain_type = "float16"};
  const std::int64_t bits = packed_bits(config, {"bits"});
  const std::int64_t group = group_size(config, {"group_size"}, 128);
  keep_plain(storage, config.texts("modules_to_not_convert"));
  read_dynamic(config, bits, group, storage);
  if (config.has("modules_in_block_to_quantize")) {
    storage.notes.emplace_back(
        "quantization_config: modules_in_block_to_quantize is counted as all matrices of a layer");
  }
  StorageRule rule{.format = packed_integer_format(WordLayout::gptq, bits, group),
                   .kinds = layer_matrices()};
  if (config.flag_or({"lm_head"}, false)) rule.kinds.push_back(ModuleKind::head);
  storage.rules.push_back(std::move(rule));
  return storage;
}

// Source: hqq/core/quantize.py: values of a group share a scale and a zero point in 16 bits; ten
// 3-bit values fill a word of 32 bits (core/bitpack.py).
WeightStorage read_hqq(ConfigReader& config) {
  WeightStorage storage{.plain_type = "float16"};
  const std::vector<std::string> skipped = config.texts("skip_modules");
  keep_plain(storage, skipped.empty() ? std::vector<std::string>{"lm_head"} : skipped);
  auto quant = config.object("quant_config");
  if (!quant || !quant->is_object("weight_quant_params")) {
    storage.notes.emplace_back(
        "quantization_config: hqq with other bits per module is counted in the unquantised type");
    return storage;
  }
  auto params = quant->object("weight_quant_params");
  const std::int64_t bits = packed_bits(*params, {"nbits"});
  const std::int64_t group = group_size(*params, {"group_size"}, 64);
  const StoredNumbers values =
      bits == 3 ? StoredNumbers{.bits = 32, .block = {1, 10}, .along = PackedAlong::flat}
                : StoredNumbers{.bits = bits, .along = PackedAlong::flat};
  StoredNumbers scale{.bits = kScaleOf16, .block = {1, group}, .along = PackedAlong::flat};
  if (group == 0) scale = per_row(kScaleOf16);
  storage.rules.push_back(
      {.format =
           StorageFormat{
               fmt::format("HQQ {}-bit, groups of {}", bits, group), values, {scale, scale}},
       .kinds = layer_matrices()});
  return storage;
}

// EXL2 spends its bits unevenly over the columns; config.json states the average with scales
// (turboderp/exllamav2, doc/convert.md, --bits and --head_bits).
WeightStorage read_exl2(ConfigReader& config) {
  constexpr double kPerThousand = 1000;
  const auto average = [](double bits) {
    return StorageFormat{fmt::format("EXL2, {:g} bits on average", bits),
                         {.bits = static_cast<std::int64_t>(std::llround(bits * kPerThousand)),
                          .block = {1, 1000},
                          .along = PackedAlong::flat}};
  };
  WeightStorage storage{.plain_type = "float16"};
  const double bits = config.number_or({"bits"}, 4);
  const double head_bits = config.number_or({"head_bits"}, 6);
  if (bits <= 0 || bits > 16 || head_bits <= 0 || head_bits > 16) {
    config.fail("bits", "expected more than 0 and at most 16 bits", "write the average bits");
  }
  storage.rules.push_back({.format = average(bits), .kinds = layer_matrices()});
  storage.rules.push_back({.format = average(head_bits), .kinds = {ModuleKind::head}});
  // Everything else is written in float16, whatever torch_dtype says (conversion/compile.py).
  storage.rules.push_back(
      {.format = plain_format("float16"),
       .kinds = {ModuleKind::router, ModuleKind::embedding, ModuleKind::convolution,
                 ModuleKind::tower, ModuleKind::other}});
  storage.notes.emplace_back(
      "quantization_config: exl2 states average bits per weight, so bytes are estimates");
  return storage;
}

// BitNet b1.58 stores four ternary numbers of a column in a byte, and a scale of 16 bits per
// matrix; "online" quantises weights that are stored whole (transformers, integrations/bitnet.py).
WeightStorage read_bitnet_weights(ConfigReader& config) {
  WeightStorage storage;
  keep_plain(storage, config.texts("modules_to_not_convert"));
  config.ignore({"linear_class", "use_rms_norm", "rms_norm_eps"});
  const bool stored_whole = config.is_text("quantization_mode", "online");
  config.expect_text("quantization_mode", stored_whole ? "online" : "offline");
  const StorageFormat ternary{"ternary, a scale per matrix",
                              {.bits = 2, .along = PackedAlong::out, .word_bits = 8},
                              {once(16)}};
  if (!stored_whole) storage.rules.push_back({.format = ternary, .kinds = layer_matrices()});
  return storage;
}

}  // namespace headroom::detail
