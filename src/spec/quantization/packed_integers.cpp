// Weight-only integers: AWQ, GPTQ, HQQ, and EXL2's mix.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "methods.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kScaleOf16 = 16;

std::int64_t packed_bits(ConfigReader& config, ConfigReader::Keys keys,
                         std::int64_t otherwise = 4) {
  const std::int64_t value = whole_number(config, keys, otherwise);
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
      rule.format = packed_integer_format(WordLayout::gptq, packed_bits(*own, {"bits"}, bits),
                                          group_size(*own, {"group_size"}, group));
    }
    storage.rules.push_back(std::move(rule));
  }
}

/// The name of a module, or an expression that occurs in names (vLLM, quantization/inc.py:
/// re.search if the key has a character of expressions).
ModulePattern auto_round_pattern(const std::string& key) {
  if (key.find_first_of("*+?^$()[]{}|\\") == std::string::npos) return {key};
  return {key.front() == '^' ? key : ".*(?:" + key + ")", PatternSyntax::regex};
}

/// auto-round's "extra_config": modules with other bits, which 16 leave as they are.
void read_extra_config(ConfigReader& config, std::int64_t bits, std::int64_t group,
                       WeightStorage& storage) {
  constexpr std::int64_t kUnquantised = 16;
  auto extra = config.object("extra_config");
  if (!extra) return;
  for (const std::string& key : extra->keys()) {
    auto own = extra->object(key);
    StorageRule rule{.kinds = all_matrices(), .patterns = {auto_round_pattern(key)}};
    if (whole_number(*own, {"bits"}, bits) < kUnquantised) {
      rule.format = packed_integer_format(WordLayout::gptq, packed_bits(*own, {"bits"}, bits),
                                          group_size(*own, {"group_size"}, group));
    }
    storage.rules.push_back(std::move(rule));
  }
}

/// AutoAWQ and vLLM leave out the modules whose names contain an entry. A single word is a whole
/// one: "gate" is the router, and vLLM's names of stacked experts have no "gate_proj".
std::vector<ModulePattern> awq_patterns(std::vector<std::string> entries) {
  std::vector<ModulePattern> patterns;
  for (std::string& entry : entries) {
    const bool dotted = entry.find('.') != std::string::npos;
    patterns.push_back({std::move(entry), dotted ? PatternSyntax::part : PatternSyntax::words});
  }
  return patterns;
}

/// EXL2 and EXL3 spend `bits` unevenly, so that a matrix has this average with scales.
StorageFormat average_format(std::string_view word, double bits) {
  constexpr double kPerThousand = 1000;
  return {fmt::format("{}, {:g} bits on average", word, bits),
          {.bits = static_cast<std::int64_t>(std::llround(bits * kPerThousand)),
           .block = {1, 1000},
           .along = PackedAlong::flat}};
}

WeightStorage read_average_bits(ConfigReader& config, std::string_view word,
                                std::string_view method) {
  WeightStorage storage{.plain_type = "float16"};
  const double bits = config.number_or({"bits"}, 4);
  const double head_bits = config.number_or({"head_bits"}, 6);
  if (bits <= 0 || bits > 16 || head_bits <= 0 || head_bits > 16) {
    config.fail("bits", "expected more than 0 and at most 16 bits", "write the average bits");
  }
  storage.rules.push_back({.format = average_format(word, bits), .kinds = layer_matrices()});
  storage.rules.push_back({.format = average_format(word, head_bits), .kinds = {ModuleKind::head}});
  storage.notes.push_back(fmt::format(
      "quantization_config: {} states average bits per weight, so bytes are estimates", method));
  return storage;
}

}  // namespace

// Source: transformers, integrations/awq.py: every nn.Linear of the layers but
// modules_to_not_convert; the head stays. AutoAWQ never quantises routers
// (awq/models/mixtral.py, "modules_to_not_convert": ["gate"]).
WeightStorage read_awq(ConfigReader& config) {
  WeightStorage storage{.plain_type = "float16"};
  const std::vector<ModulePattern> kept = awq_patterns(config.texts("modules_to_not_convert"));
  if (!kept.empty()) storage.rules.push_back({.kinds = all_matrices(), .patterns = kept});
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
  read_extra_config(config, bits, group, storage);
  if (config.has("modules_in_block_to_quantize")) {
    storage.notes.emplace_back(
        "quantization_config: modules_in_block_to_quantize is counted as all matrices of a layer");
  }
  StorageFormat format = packed_integer_format(WordLayout::gptq, bits, group);
  // Zero points that are all equal leave the product.
  format.equal_zeros = config.flag_or({"sym"}, false);
  if (format.equal_zeros) format.name += ", symmetric";
  StorageRule rule{.format = std::move(format), .kinds = layer_matrices()};
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
    storage.bytes_known = false;
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
// (turboderp/exllamav2, doc/convert.md, --bits and --head_bits). Everything else is written in
// float16, whatever torch_dtype says (conversion/compile.py).
WeightStorage read_exl2(ConfigReader& config) {
  WeightStorage storage = read_average_bits(config, "EXL2", "exl2");
  storage.rules.push_back(
      {.format = plain_format("float16"),
       .kinds = {ModuleKind::router, ModuleKind::embedding, ModuleKind::convolution,
                 ModuleKind::tower, ModuleKind::other}});
  return storage;
}

// EXL3 gives layers whole bits whose average config.json states (turboderp/exllamav3,
// doc/convert.md).
WeightStorage read_exl3(ConfigReader& config) { return read_average_bits(config, "EXL3", "exl3"); }

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
