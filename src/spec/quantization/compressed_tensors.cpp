// compressed-tensors, the format of llm-compressor.
// Source: compressed_tensors/quantization/quant_args.py and compressors/quantized_compressors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "methods.h"
#include "stated_types.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kWordOf32 = 32;
constexpr std::int64_t kScaleBits = 16;  // scales have the type of the unquantised weights

/// Part of a matrix that has one scale.
enum class Strategy { tensor, channel, group, block, tensor_group };

/// How quantised values are written.
enum class Layout { dense, packed, plain_values, nvfp4, mxfp4, mxfp8, marlin_24 };

/// `weights` of a config group.
struct Scheme {
  std::string type;
  std::int64_t bits = 8;
  Strategy strategy = Strategy::tensor;
  std::int64_t group = 0;
  BlockShape block{};
  bool symmetric = true;
  bool ordered = false;  ///< the group of every input is stored
};

/// A group's size implies the strategy that is left out (QuantizationArgs.validate_strategy).
Strategy read_strategy(ConfigReader& weights, std::int64_t group) {
  const Strategy derived = group > 0    ? Strategy::group
                           : group == 0 ? Strategy::tensor
                                        : Strategy::channel;
  return weights.choice_or<Strategy>({"strategy"},
                                     {{"tensor", Strategy::tensor},
                                      {"channel", Strategy::channel},
                                      {"group", Strategy::group},
                                      {"block", Strategy::block},
                                      {"tensor_group", Strategy::tensor_group}},
                                     derived);
}

std::int64_t read_bits(ConfigReader& weights) {
  constexpr std::int64_t kMost = 16;  // of the types that quantisation replaces
  const std::int64_t bits = whole_number(weights, {"num_bits"}, 8);
  if (bits >= 1 && bits <= kMost) return bits;
  weights.fail("num_bits", fmt::format("{} bits are not supported", bits), "write 1 to 16 bits");
}

Scheme read_scheme(ConfigReader& weights) {
  Scheme scheme;
  scheme.type = weights.text_or({"type"}, "int");
  scheme.bits = read_bits(weights);
  const std::int64_t group = whole_number(weights, {"group_size"}, 0);
  scheme.strategy = read_strategy(weights, group);
  scheme.group = std::max<std::int64_t>(0, group);
  scheme.symmetric = weights.flag_or({"symmetric"}, true);
  // "group" reorders inputs; "weight" and "static" leave them in place.
  scheme.ordered = weights.is_text("actorder") && weights.text_or({"actorder"}, "") == "group";
  if (weights.is_list("block_structure")) {
    const std::vector<std::int64_t> block = weights.counts("block_structure");
    if (block.size() == 2) scheme.block = {block[0], block[1]};
  }
  if (scheme.strategy == Strategy::block && scheme.block == BlockShape{}) {
    weights.fail("block_structure", "is missing, and the strategy \"block\" needs it",
                 "write [rows, columns]");
  }
  return scheme;
}

BlockShape grid_of(const Scheme& scheme) {
  switch (scheme.strategy) {
    case Strategy::tensor:
      return {0, 0};
    case Strategy::channel:
      return {1, 0};
    case Strategy::group:
    case Strategy::tensor_group:
      return {1, scheme.group};
    case Strategy::block:
      break;
  }
  return scheme.block;
}

std::string grain_words(const Scheme& scheme) {
  switch (scheme.strategy) {
    case Strategy::tensor:
      return "a scale per tensor";
    case Strategy::channel:
      return "a scale per row";
    case Strategy::group:
    case Strategy::tensor_group:
      return fmt::format("groups of {}", scheme.group);
    case Strategy::block:
      break;
  }
  return fmt::format("a scale per {} × {}", scheme.block.out, scheme.block.in);
}

/// int32 words along the input, their logical shape as two int64, and zero points packed along the
/// output (pack_quantized.py).
StorageFormat packed_integers(const Scheme& scheme) {
  constexpr std::int64_t kShape = std::int64_t{2} * 64;
  const BlockShape grid = grid_of(scheme);
  StorageFormat format{fmt::format("INT{}, {}", scheme.bits, grain_words(scheme)),
                       {.bits = scheme.bits, .word_bits = kWordOf32},
                       {{.bits = kScaleBits, .block = grid}, once(kShape)},
                       integer_codes(scheme.bits)};
  if (!scheme.symmetric) {
    format.beside.push_back(
        {.bits = scheme.bits, .block = grid, .along = PackedAlong::out, .word_bits = kWordOf32});
  }
  if (scheme.ordered) format.beside.push_back({.bits = 32, .block = {0, 1}});
  return format;
}

/// One byte per value; an asymmetric zero point has the type of the values.
StorageFormat whole_bytes(const Scheme& scheme) {
  const bool floats = scheme.type == "float";
  const auto float_codes =
      scheme.bits == 8 ? std::optional(GroupCodes::float8) : std::optional<GroupCodes>();
  StorageFormat format{
      fmt::format("{}{}, {}", floats ? "FP" : "INT", scheme.bits, grain_words(scheme)),
      {.bits = scheme.bits, .word_bits = 8},
      {{.bits = kScaleBits, .block = grid_of(scheme)}},
      floats ? float_codes : integer_codes(scheme.bits)};
  if (!scheme.symmetric) format.beside.push_back({.bits = 8, .block = grid_of(scheme)});
  return format;
}

Layout read_layout(ConfigReader& config, Layout otherwise) {
  return config.choice_or<Layout>({"format"},
                                  {{"pack-quantized", Layout::packed},
                                   {"float-quantized", Layout::plain_values},
                                   {"int-quantized", Layout::plain_values},
                                   {"naive-quantized", Layout::plain_values},
                                   {"nvfp4-pack-quantized", Layout::nvfp4},
                                   {"mxfp4-pack-quantized", Layout::mxfp4},
                                   {"mxfp8-quantized", Layout::mxfp8},
                                   {"marlin-24", Layout::marlin_24},
                                   {"mixed-precision", otherwise},
                                   {"dense", Layout::dense},
                                   {"fakequant", Layout::dense}},
                                  otherwise);
}

/// Two of four values along the input, packed, with 16 bits that place those of 16 values, and
/// symmetric scales (marlin_24.py; vLLM, gptq_marlin_24.py: B, B_meta and s).
StorageFormat half_of_integers(const Scheme& scheme) {
  return {fmt::format("INT{} of 2:4 values, {}", scheme.bits, grain_words(scheme)),
          {.bits = scheme.bits, .block = {1, 2}, .word_bits = kWordOf32},
          {{.bits = kScaleBits, .block = grid_of(scheme)}, {.bits = 16, .block = {1, 16}}}};
}

/// A statically quantised input has one stored scale per layer.
enum class InputScale { none, stored };

std::optional<StorageFormat> format_of(const Scheme& scheme, Layout layout, InputScale input) {
  switch (layout) {
    case Layout::dense:
      return std::nullopt;
    case Layout::nvfp4:
      return nvfp4_format(input == InputScale::stored ? 2 : 1);
    case Layout::mxfp4:
      return mxfp4_format();
    case Layout::mxfp8:
      return mxfp8_format();
    case Layout::marlin_24:
      return half_of_integers(scheme);
    case Layout::packed:
    case Layout::plain_values:
      break;
  }
  StorageFormat format = layout == Layout::packed ? packed_integers(scheme) : whole_bytes(scheme);
  if (input == InputScale::stored) format.beside.push_back(once(kScaleBits));
  return format;
}

/// Classes that a target may name; any other word is a module's name. Routers are parameters of
/// their own class (DeepSeek) or in every published `ignore`: vLLM loads them unquantised whatever
/// the config says (model_executor/models/mixtral.py, gate with quant_config=None).
const std::vector<ModuleKind>* kinds_of_class(std::string_view target) {
  static const std::array<std::pair<std::string_view, std::vector<ModuleKind>>, 4> kClasses{
      {{"Linear", {ModuleKind::linear, ModuleKind::experts, ModuleKind::head, ModuleKind::tower}},
       {"LinearBase", layer_matrices()},
       {"Embedding", {ModuleKind::embedding}},
       {"ParallelLMHead", {ModuleKind::head}}}};
  const auto* const found =
      std::ranges::find(kClasses, target, [](const auto& one) { return one.first; });
  return found == kClasses.end() ? nullptr : &found->second;
}

bool looks_like_class(std::string_view target) {
  return !target.empty() && std::isupper(static_cast<unsigned char>(target.front())) != 0 &&
         target.find('.') == std::string_view::npos;
}

/// Adds the rules of one group: one for classes, one for names.
void add_targets(WeightStorage& storage, std::vector<std::string> targets,
                 const std::optional<StorageFormat>& format) {
  std::vector<std::string> names;
  for (std::string& target : targets) {
    if (const std::vector<ModuleKind>* const kinds = kinds_of_class(target)) {
      storage.rules.push_back({.format = format, .kinds = *kinds});
    } else if (looks_like_class(target)) {
      storage.notes.push_back(fmt::format(
          "quantization_config quantises the class {}, which is not known; its weights are "
          "counted in the unquantised type",
          target));
    } else {
      names.push_back(std::move(target));
    }
  }
  if (names.empty()) return;
  // Names decide before classes (compressed_tensors/utils/match.py).
  storage.rules.insert(
      storage.rules.begin(),
      {.format = format, .kinds = all_matrices(), .patterns = patterns_of(std::move(names))});
}

void read_group(ConfigReader& group, Layout layout, WeightStorage& storage) {
  auto weights = group.object("weights");
  if (!weights) return;  // activations only
  auto inputs = group.object("input_activations");
  InputScale input = InputScale::none;
  if (inputs) {
    // "local" keeps a static scale of the tensor beside scales of groups (NVFP4).
    const bool computed = !inputs->is_text("dynamic") && inputs->flag_or({"dynamic"}, false);
    input = computed ? InputScale::none : InputScale::stored;
    if (!storage.activations) {
      storage.activations = stated_type(*inputs, inputs->text_or({"type"}, "int"),
                                        whole_number(*inputs, {"num_bits"}, 8));
    }
  }
  const Layout own = read_layout(group, layout);
  add_targets(storage, group.texts("targets"), format_of(read_scheme(*weights), own, input));
}

}  // namespace

// Everything named in `ignore` stays; a target "Linear" is every other nn.Linear, the head
// included.
WeightStorage read_compressed_tensors(ConfigReader& config) {
  WeightStorage storage{.plain_type = "bfloat16"};
  const Layout layout = read_layout(config, Layout::plain_values);
  if (auto groups = config.object("config_groups")) {
    for (const std::string& name : groups->keys()) {
      auto group = groups->object(name);
      read_group(*group, layout, storage);
    }
  }
  WeightStorage ignored;
  keep_plain(ignored, config.texts("ignore"));
  storage.rules.insert(storage.rules.begin(), ignored.rules.begin(), ignored.rules.end());
  storage.kv_cache = read_kv_cache_type(config);
  if (config.has("sparsity_config") && config.is_object("sparsity_config")) {
    auto sparsity = config.object("sparsity_config");
    const std::string format = sparsity->text_or({"format"}, "dense");
    if (format != "dense") {
      storage.notes.push_back(
          fmt::format("sparsity_config: {} stores fewer values than are counted here", format));
    }
  }
  return storage;
}

}  // namespace headroom::detail
