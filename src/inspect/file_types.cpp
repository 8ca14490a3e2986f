// Types of a model's files as rules of its storage.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "gguf_mix.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "model_files.h"
#include "module_names.h"
#include "quantization/methods.h"
#include "tensor_finder.h"
#include "weight_copies.h"
#include "weight_places.h"

namespace headroom {
namespace detail {
namespace {

using checkpoint::DataType;

/// Layers of one weight that share a format.
struct TypedLayers {
  StorageFormat format;
  std::vector<std::int64_t> layers;
};

StorageFormat format_of(DataType type) {
  if (const auto* const ggml = std::get_if<checkpoint::GgmlType>(&type)) return ggml_format(*ggml);
  const auto stored = std::get<checkpoint::StoredType>(type);
  std::optional<GroupCodes> codes;
  if (stored == checkpoint::StoredType::float16) codes = GroupCodes::float16;
  if (stored == checkpoint::StoredType::bfloat16) codes = GroupCodes::bfloat16;
  return {std::string(checkpoint::stored_name(stored)),
          {.bits = static_cast<std::int64_t>(checkpoint::stored_bits(stored))},
          {},
          codes};
}

std::optional<StorageFormat> not_stored() { return StorageFormat{"not stored", {.bits = 0}}; }

/// The format of a weight that GGUF splits into tensors of several types, "Q8_0 and Q5_0": the
/// bytes of them all.
StorageFormat format_of_parts(const LogicalTensor& tensor) {
  constexpr std::int64_t kByte = 8;
  const auto types = checkpoint::ggml_types();
  const auto found = std::ranges::find(types, tensor.type, &checkpoint::GgmlTypeInfo::name);
  if (found != types.end()) return ggml_format(found->type);
  const Integer bits = checked_multiply(tensor.totals.bytes, kByte);
  return {std::string(tensor.type), {.bits = checked_int64(bits), .block = {0, 0}}};
}

/// Reads the type of every weight in every layer. Fails where a tensor is missing or packed.
class TypeReader {
 public:
  TypeReader(const LogicalTensors& tensors, const ModelSpec& spec, const Graph& graph,
             NameTable names)
      : tensors_(tensors),
        spec_(spec),
        graph_(graph),
        places_(spec, graph, std::move(names)),
        finder_(tensors, places_.table()) {}

  /// One rule per path and format; empty if the types cannot tell the storage.
  std::optional<std::vector<StorageRule>> run() {
    const std::vector<std::vector<std::int64_t>> layers = layers_of_copies(spec_, graph_);
    std::map<std::string, Types> types;  // layers of several kinds have weights of the same path
    for (WeightId id = 0; id < graph_.weights.size(); ++id) {
      const Weight& weight = graph_.weights[id];
      if (!add_types(weight, layers[id], types[weight.path])) return std::nullopt;
    }
    std::vector<StorageRule> rules;
    for (const auto& [path, formats] : types) {
      for (const auto& [name, typed] : formats) {
        rules.push_back(rule_for(path, typed, formats.size() > 1));
      }
    }
    // A path may end with another: "decoder.final_norm.weight" with "final_norm.weight".
    std::ranges::stable_sort(rules, std::ranges::greater{},
                             [](const StorageRule& rule) { return rule.weights.front().size(); });
    return rules;
  }

 private:
  using Types = std::map<std::string, TypedLayers>;

  static StorageRule rule_for(const std::string& path, const TypedLayers& typed, bool several) {
    StorageRule rule{.format = typed.format, .kinds = all_matrices(), .weights = {path}};
    rule.kinds.push_back(ModuleKind::other);
    if (several) rule.layers = typed.layers;
    return rule;
  }

  /// Adds the formats of the weight in these layers. Returns false if they cannot be told.
  [[nodiscard]] bool add_types(const Weight& weight, const std::vector<std::int64_t>& layers,
                               Types& types) {
    for (const std::int64_t layer : layers) {
      const WeightPattern& pattern = finder_.stored_pattern(places_.patterns(weight), layer);
      const auto index = finder_.find(filled(pattern.name.pattern, layer, 0));
      if (!index && !may_be_absent(weight)) return false;
      const std::optional<StorageFormat> format = index ? format_at(*index) : not_stored();
      if (!format) return false;
      TypedLayers& typed = types[format->name];
      typed.format = *format;
      typed.layers.push_back(layer);
    }
    return true;
  }

  [[nodiscard]] std::optional<StorageFormat> format_at(std::size_t index) const {
    const checkpoint::TensorTable& stored = tensors_.files().tensors();
    if (index < stored.size()) return format_of(stored[index].type);
    // Packings of safetensors, such as NVFP4, are named as ggml's types, and are others.
    if (tensors_.files().gguf().empty()) return std::nullopt;
    return format_of_parts(tensors_[index]);
  }

  const LogicalTensors& tensors_;
  const ModelSpec& spec_;
  const Graph& graph_;
  WeightPlaces places_;
  TensorFinder finder_;
};

/// The plain type if all rules store it and it has a torch name; empty otherwise.
std::string only_plain_type(const std::vector<StorageRule>& rules) {
  for (const char* const type : {"bfloat16", "float16", "float32"}) {
    const StorageFormat plain = plain_format(type);
    const auto stores_it = [&](const StorageRule& rule) { return rule.format == plain; };
    const bool all = std::ranges::all_of(rules, stores_it);
    if (all) return type;
  }
  return {};
}

}  // namespace
}  // namespace detail

Model with_file_types(Model model) {
  if (model.weight_files.empty()) return model;
  const checkpoint::ModelFiles files{std::filesystem::path(model.weight_files)};
  const detail::LogicalTensors tensors(files);
  const bool gguf = !files.gguf().empty();
  if (!gguf && !detail::has_stored_names(model.spec)) return model;  // stored_weights says so
  const Graph graph = build_graph(model.spec, all_parts());
  detail::NameTable names =
      gguf ? detail::gguf_name_table(model.spec) : detail::name_table(model.spec);
  auto rules = detail::TypeReader(tensors, model.spec, graph, std::move(names)).run();
  WeightStorage& storage = model.spec.storage;
  if (rules) {
    storage.plain_type = detail::only_plain_type(*rules);
    const bool plain = !storage.plain_type.empty();
    storage.rules = plain ? std::vector<StorageRule>{} : std::move(*rules);
    storage.origin = gguf ? "GGUF tensors" : "safetensors headers";
  }
  const StoredWeights held = stored_weights(model, graph);
  const Integer difference = stored_weights(model.spec, graph).bytes - held.bytes;
  if (!held.notes.empty()) {
    storage.notes = held.notes;
  } else if (difference != 0) {
    storage.notes.push_back(fmt::format("the files hold {} bytes of weights, {} {} than is counted",
                                        with_separators(held.bytes),
                                        with_separators(difference < 0 ? -difference : difference),
                                        difference < 0 ? "more" : "fewer"));
  }
  return model;
}

}  // namespace headroom
