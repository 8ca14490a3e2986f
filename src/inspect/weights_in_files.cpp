// Stored bytes of every weight of a graph, as the model's files hold them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "headroom/error.h"
#include "headroom/storage.h"
#include "model_files.h"
#include "module_names.h"
#include "setting_format.h"
#include "stored/names.h"
#include "tensor_finder.h"
#include "weight_copies.h"
#include "weight_places.h"

namespace headroom {
namespace detail {
namespace {

/// Parts of one tensor take whole bytes and sum to its bytes.
Integer part_bytes(const WeightPattern& pattern, Integer tensor_bytes) {
  const StackRange& range = pattern.range;
  const Stacking stacking = pattern.name.layout.stacking;
  const bool is_only_owner = stacking == Stacking::alone || stacking == Stacking::padded;
  if (is_only_owner || range.group_size == 0) return tensor_bytes;
  const auto upto = [&](std::int64_t rows) {
    return checked_multiply(tensor_bytes, rows) / range.group_size;
  };
  return upto(range.begin + range.size) - upto(range.begin);
}

class FileWeights {
 public:
  FileWeights(const LogicalTensors& tensors, const ModelSpec& spec, const Graph& graph,
              NameTable names)
      : tensors_(tensors),
        spec_(spec),
        graph_(graph),
        places_(spec, graph, std::move(names)),
        finder_(tensors, places_.table()),
        owned_(tensors.size()) {}

  /// Empty if a weight has no tensor of its shape.
  std::optional<StoredWeights> run() {
    const std::vector<std::vector<std::int64_t>> layers = layers_of_copies(spec_, graph_);
    for (WeightId id = 0; id < graph_.weights.size(); ++id) {
      if (!add(graph_.weights[id], layers[id])) return std::nullopt;
    }
    for (auto& [name, group] : groups_) stored_.groups.push_back(std::move(group));
    std::ranges::stable_sort(stored_.groups, std::ranges::greater{}, &StorageGroup::bytes);
    add_extras();
    return std::move(stored_);
  }

 private:
  bool add(const Weight& weight, const std::vector<std::int64_t>& layers) {
    StoredWeight& stored = stored_.weights.emplace_back();
    std::vector<Integer> copies;
    for (const std::int64_t layer : layers) {
      const std::optional<Integer> bytes = bytes_in_layer(weight, layer);
      if (!bytes) return false;
      copies.push_back(*bytes);
      stored.bytes = checked_add(stored.bytes, *bytes);
    }
    const auto differs = [&](Integer one) { return one != copies.front(); };
    if (std::ranges::any_of(copies, differs)) stored.bytes_of_copy = std::move(copies);
    stored_.bytes = checked_add(stored_.bytes, stored.bytes);
    return true;
  }

  std::optional<Integer> bytes_in_layer(const Weight& weight, std::int64_t layer) {
    const WeightPattern& pattern = finder_.stored_pattern(places_.patterns(weight), layer);
    Integer sum = 0;
    for (std::int64_t expert = 0; expert < pattern.tensors(); ++expert) {
      const auto index = finder_.find(filled(pattern.name.pattern, layer, expert));
      if (!index) {
        if (may_be_absent(weight)) return Integer{0};
        return std::nullopt;
      }
      const LogicalTensor tensor = tensors_[*index];
      if (!pattern.fits(tensor.shape)) return std::nullopt;
      owned_[*index] = true;
      const Integer bytes = part_bytes(pattern, tensor.totals.bytes);
      StorageGroup& group = groups_[std::string(tensor.type)];
      group.format = tensor.type;
      group.parameters = checked_add(group.parameters, pattern.elements(tensor.shape));
      group.bytes = checked_add(group.bytes, bytes);
      sum = checked_add(sum, bytes);
    }
    return sum;
  }

  /// Tensors that are no weights of the graph, by kind.
  void add_extras() {
    std::map<std::string, StorageGroup> kinds;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (owned_[i] || tensors_.is_piece(i)) continue;
      const LogicalTensor tensor = tensors_[i];
      const std::string kind = kind_of(tensor.name);
      StorageGroup& group = kinds[kind];
      group.format = kind;
      group.parameters = checked_add(group.parameters, tensor.totals.values);
      group.bytes = checked_add(group.bytes, tensor.totals.bytes);
    }
    for (auto& [name, group] : kinds) stored_.extras.push_back(std::move(group));
  }

  [[nodiscard]] std::string kind_of(std::string_view name) const {
    const auto layer = layer_number(name);
    if (layer && *layer >= spec_.main_stack().num_layers) {
      return std::string(name_of(ExtraKind::multi_token_prediction));
    }
    const auto kind = extra_kind(places_.table(), name);
    return kind ? std::string(name_of(*kind)) : "tensors of no weight";
  }

  const LogicalTensors& tensors_;
  const ModelSpec& spec_;
  const Graph& graph_;
  WeightPlaces places_;
  TensorFinder finder_;
  std::vector<bool> owned_;
  std::map<std::string, StorageGroup> groups_;
  StoredWeights stored_;
};

}  // namespace
}  // namespace detail

StoredWeights stored_weights(const Model& model, const Graph& graph) {
  if (model.weight_files.empty()) return stored_weights(model.spec, graph);
  const checkpoint::ModelFiles files{std::filesystem::path(model.weight_files)};
  const detail::LogicalTensors tensors(files);
  const bool gguf = !files.gguf().empty();
  if (!gguf && !detail::has_stored_names(model.spec)) {
    StoredWeights stated = stored_weights(model.spec, graph);
    stated.notes.push_back(fmt::format(
        "the names of {}'s tensors are not known; weights are counted as the config states them",
        model.spec.model_type));
    return stated;
  }
  detail::NameTable names =
      gguf ? detail::gguf_name_table(model.spec) : detail::name_table(model.spec);
  auto stored = detail::FileWeights(tensors, model.spec, graph, std::move(names)).run();
  if (stored) {
    stored->origin = gguf ? "GGUF tensors" : "safetensors headers";
    return std::move(*stored);
  }
  StoredWeights stated = stored_weights(model.spec, graph);
  if (gguf) stated.notes.clear();  // of a config, which a GGUF file has none of
  stated.notes.push_back(
      fmt::format("{} {}; weights are counted {}", model.weight_files,
                  tensors.size() == 0 ? "has no tensors" : "lacks tensors of the model",
                  gguf ? fmt::format("in float32, since their types are not known ({} sets one)",
                                     Setting::weights)
                       : "as the config states them"));
  return stated;
}

}  // namespace headroom
