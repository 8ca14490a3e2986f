#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "headroom/storage.h"
#include "module_kind.h"
#include "module_names.h"
#include "quantization/formats.h"
#include "rule_matcher.h"
#include "setting_format.h"
#include "weight_copies.h"
#include "weight_formats.h"

namespace headroom {
namespace detail {
namespace {

/// Notes on statements of the config that the bytes cannot follow.
std::vector<std::string> notes_on(const ModelSpec& spec, const RuleMatcher& rules) {
  std::vector<std::string> notes = spec.storage.notes;
  const std::string& type = plain_type_of(spec);
  if (!type.empty() && bits_of_plain_type(type) == 0) {
    notes.push_back(
        fmt::format("the type \"{}\" of weights is not known; they are counted in float32", type));
  }
  if (rules.has_patterns() && !has_stored_names(spec)) {
    notes.push_back(fmt::format(
        "the names of {}'s modules are not known: lists of modules in its quantization_config are "
        "not applied",
        spec.model_type));
  }
  return notes;
}

/// Decoders from this size on are published in 16 bits, with few exceptions.
constexpr std::int64_t kUsuallyIn16Bits = 1'000'000'000;

/// Returns true if float32 is a guess that may double the weights: the config of a large decoder,
/// or encoder-decoder, states no type.
bool guesses_float32(const ModelSpec& spec, const Integer& bytes) {
  const bool generates = spec.kind == ModelKind::decoder || spec.kind == ModelKind::encoder_decoder;
  const Integer parameters = bytes / bytes_of(DType::float32);
  return generates && plain_type_of(spec).empty() && parameters >= kUsuallyIn16Bits;
}

/// Bytes of one weight by format, computed when a copy needs them.
class BytesByFormat {
 public:
  BytesByFormat(MatrixSizes sizes, StackedBefore before, std::size_t formats)
      : sizes_(sizes), before_(before), bytes_(formats) {}

  /// Bytes of one expert's matrix, or of the whole weight.
  Integer one(FormatId id, const StorageFormat& format) {
    if (!bytes_[id]) bytes_[id] = before_.size == 0 ? alone(format) : beside_others(format);
    return *bytes_[id];
  }

 private:
  [[nodiscard]] Integer alone(const StorageFormat& format) const {
    return format.bytes(sizes_.out, sizes_.in);
  }

  /// A part of a stacked tensor takes what it adds to the parts before it, so that the parts sum to
  /// the tensor.
  [[nodiscard]] Integer beside_others(const StorageFormat& format) const {
    if (before_.axis == StackAxis::out) {
      return format.bytes(before_.size + sizes_.out, sizes_.in) -
             format.bytes(before_.size, sizes_.in);
    }
    return format.bytes(sizes_.out, before_.size + sizes_.in) -
           format.bytes(sizes_.out, before_.size);
  }

  MatrixSizes sizes_;
  StackedBefore before_;
  std::vector<std::optional<Integer>> bytes_;
};

class StorageResolver {
 public:
  StorageResolver(const ModelSpec& spec, const Graph& graph)
      : spec_(spec), graph_(graph), rules_(spec.storage, plain_format(plain_type_of(spec))) {
    if (!rules_.empty()) names_.emplace(spec, graph);
    stored_.origin = spec.storage.origin;
    stored_.notes = notes_on(spec, rules_);
  }

  StoredWeights run() {
    const std::vector<std::vector<std::int64_t>> layers = layers_of_copies(spec_, graph_);
    for (WeightId id = 0; id < graph_.weights.size(); ++id) {
      StoredWeight& stored = stored_.weights.emplace_back();
      if (rules_.empty()) {
        store_plain(graph_.weights[id], layers[id].size(), stored);
      } else {
        store(graph_.weights[id], layers[id], stored);
      }
      stored_.bytes = checked_add(stored_.bytes, stored.bytes);
    }
    if (rules_.empty() && guesses_float32(spec_, stored_.bytes)) {
      stored_.notes.push_back(
          fmt::format("the config states no type of its weights: counted as float32, 4 bytes per "
                      "parameter; {} bfloat16 counts 2",
                      Setting::weights));
    }
    for (auto& [name, group] : groups_) stored_.groups.push_back(std::move(group));
    std::ranges::stable_sort(stored_.groups, std::ranges::greater{}, &StorageGroup::bytes);
    return std::move(stored_);
  }

 private:
  void add_to_group(FormatId id, Integer parameters, Integer bytes) {
    const StorageFormat& format = rules_.format(id);
    StorageGroup& group = groups_[format.name];
    group.format = format.name;
    group.parameters = checked_add(group.parameters, parameters);
    group.bytes = checked_add(group.bytes, bytes);
  }

  void store_plain(const Weight& weight, std::size_t copies, StoredWeight& stored) {
    constexpr std::int64_t kByte = 8;
    const Integer elements = checked_multiply(weight.elements().evaluate(graph_.sizes),
                                              static_cast<std::int64_t>(copies));
    stored.bytes = checked_multiply(elements, rules_.format(0).values.bits / kByte);
    add_to_group(0, elements, stored.bytes);
  }

  void store(const Weight& weight, const std::vector<std::int64_t>& layers, StoredWeight& stored) {
    const MatrixSizes sizes = matrix_sizes(weight, graph_.sizes);
    const RuledWeight ruled{weight.path, module_kind(weight, sizes), sizes.in,
                            names_->of(weight.path)};
    BytesByFormat bytes(sizes, names_->before(weight.path), rules_.formats());
    if (!rules_.tells_layers() && !layers.empty()) {
      const auto copies = static_cast<std::int64_t>(layers.size());
      stored.bytes =
          checked_multiply(store_copy(sizes, ruled, layers.front(), copies, bytes), copies);
      return;
    }
    std::vector<Integer> copies;
    copies.reserve(layers.size());
    for (const std::int64_t layer : layers) {
      copies.push_back(store_copy(sizes, ruled, layer, 1, bytes));
      stored.bytes = checked_add(stored.bytes, copies.back());
    }
    const auto differs = [&](Integer one) { return one != copies.front(); };
    if (std::ranges::any_of(copies, differs)) stored.bytes_of_copy = std::move(copies);
  }

  /// Bytes of the copy in `layer`, which stands for `times` equal copies in the groups.
  Integer store_copy(const MatrixSizes& sizes, const RuledWeight& ruled, std::int64_t layer,
                     std::int64_t times, BytesByFormat& bytes) {
    const bool each = rules_.tells_experts() && ruled.kind == ModuleKind::experts;
    const std::int64_t asked = each ? sizes.experts : 1;
    const Integer experts = each ? 1 : sizes.experts;
    const Integer elements = checked_multiply(checked_multiply(sizes.out, sizes.in), experts);
    Integer sum = 0;
    for (std::int64_t expert = 0; expert < asked; ++expert) {
      const FormatId id = rules_.format_id(ruled, layer, expert);
      const Integer all = checked_multiply(bytes.one(id, rules_.format(id)), experts);
      add_to_group(id, checked_multiply(elements, times), checked_multiply(all, times));
      sum = checked_add(sum, all);
    }
    return sum;
  }

  const ModelSpec& spec_;
  const Graph& graph_;
  RuleMatcher rules_;
  std::optional<ModuleNames> names_;
  std::map<std::string, StorageGroup> groups_;
  StoredWeights stored_;
};

}  // namespace
}  // namespace detail

StoredWeights stored_weights(const ModelSpec& spec, const Graph& graph) {
  return detail::StorageResolver(spec, graph).run();
}

}  // namespace headroom
