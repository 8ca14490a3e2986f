// The model types that headroom reads, and those nearest to an unknown one.
#include <algorithm>

#include "family.h"
#include "headroom/model_source.h"
#include "similar.h"
#include "unknown_type.h"

namespace headroom {
namespace {

// A shorter common beginning, such as "ge", says nothing about a family.
constexpr std::size_t kTellingPrefix = 4;
constexpr std::size_t kMostNearest = 3;

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto differs = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(differs.in1 - a.begin());
}

/// The types that begin as `word` does, longest common beginning first.
std::vector<std::string> of_the_same_beginning(std::string_view word,
                                               std::vector<std::string> known) {
  std::erase_if(
      known, [&](const std::string& type) { return common_prefix(type, word) < kTellingPrefix; });
  std::ranges::stable_sort(known, std::ranges::greater{},
                           [&](const std::string& type) { return common_prefix(type, word); });
  if (known.size() > kMostNearest) known.resize(kMostNearest);
  return known;
}

}  // namespace

std::vector<ModelTypeInfo> list_model_types() {
  std::vector<ModelTypeInfo> types;
  for (const detail::Family& family : detail::families()) {
    for (const std::string_view name : family.model_types.names) {
      types.push_back({std::string(name), family.classes.list.front().name,
                       std::holds_alternative<detail::GgufForm>(family.gguf)});
    }
  }
  std::ranges::sort(types, {}, &ModelTypeInfo::model_type);
  return types;
}

std::vector<std::string> nearest_model_types(std::string_view model_type) {
  std::vector<std::string> known;
  for (ModelTypeInfo& type : list_model_types()) known.push_back(std::move(type.model_type));
  std::vector<std::string> nearest = detail::similar_words(model_type, known);
  return nearest.empty() ? of_the_same_beginning(model_type, known) : nearest;
}

namespace detail {

std::string list_of_types_hint(std::string_view model_type) {
  const std::vector<std::string> nearest = nearest_model_types(model_type);
  std::string hint = model_type.empty() ? "add the model's type"
                     : nearest.empty()  ? "no known type has a name like it"
                                        : "the closest known types: ";
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    hint += (i == 0 ? "" : ", ") + nearest[i];
  }
  return hint + "\n`headroom presets types` lists all";
}

}  // namespace detail
}  // namespace headroom
