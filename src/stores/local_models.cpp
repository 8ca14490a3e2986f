#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "similar.h"
#include "stores.h"

namespace headroom {
namespace {

constexpr std::string_view kOllama = "ollama:";
constexpr std::size_t kMostListed = 8;  // in a hint

/// The name and the store that a typed name asks for.
struct Wanted {
  std::string name;
  std::optional<ModelStore> store;  ///< empty: any
};

Wanted wanted(const std::string& name) {
  if (!name.starts_with(kOllama)) return {name, std::nullopt};
  std::string model = name.substr(kOllama.size());
  if (model.find(':') == std::string::npos) model += ":latest";
  return {std::move(model), ModelStore::ollama};
}

[[noreturn]] void refuse_several(const std::string& name, const std::vector<std::string>& files) {
  const std::size_t listed = std::min(files.size(), kMostListed);
  const std::vector<std::string> first(files.begin(),
                                       files.begin() + static_cast<std::ptrdiff_t>(listed));
  throw Error(ErrorCode::invalid_input, fmt::format("contains {} GGUF models", files.size()), name,
              fmt::format("name one of them: {}{}", fmt::join(first, ", "),
                          listed < files.size() ? ", …" : ""));
}

/// A name of Ollama's without a tag, or the only one that differs by upper and lower case.
std::optional<LocalModel> find_nearly(const LocalModels& local, const Wanted& want) {
  const bool tagged = want.name.find(':') != std::string::npos;
  std::vector<const LocalModel*> same;
  for (const LocalModel& model : local.models) {
    if (want.store && model.store != *want.store) continue;
    const bool of_ollama = model.store == ModelStore::ollama;
    if (of_ollama && !tagged && model.name == want.name + ":latest") return model;
    if (detail::lower_case(model.name) == detail::lower_case(want.name)) same.push_back(&model);
  }
  if (same.size() != 1) return std::nullopt;
  return *same.front();
}

}  // namespace

std::string_view name_of(ModelStore store) noexcept {
  switch (store) {
    case ModelStore::hugging_face:
      return "hugging_face";
    case ModelStore::ollama:
      return "ollama";
    case ModelStore::lm_studio:
      break;
  }
  return "lm_studio";
}

std::string_view description_of(ModelStore store) noexcept {
  switch (store) {
    case ModelStore::hugging_face:
      return "the Hugging Face cache";
    case ModelStore::ollama:
      return "Ollama's store";
    case ModelStore::lm_studio:
      break;
  }
  return "LM Studio's folder";
}

std::string_view name_of(LocalFormat format) noexcept {
  switch (format) {
    case LocalFormat::safetensors:
      return "safetensors";
    case LocalFormat::gguf:
      return "gguf";
    case LocalFormat::pytorch:
      return "pytorch";
    case LocalFormat::config:
      break;
  }
  return "config";
}

LocalModels list_local_models() {
  LocalModels local;
  detail::add_hugging_face(local);
  detail::add_ollama(local);
  detail::add_lm_studio(local);
  std::ranges::stable_sort(
      local.models, {}, [](const LocalModel& model) { return std::tie(model.store, model.name); });
  std::ranges::stable_sort(local.problems, {}, &StoreProblem::name);
  return local;
}

std::optional<LocalModel> find_local_model(const LocalModels& local, const std::string& name) {
  const Wanted want = wanted(name);
  std::vector<std::string> files;
  const bool is_repository = want.name.find('/') != std::string::npos;
  for (const LocalModel& model : local.models) {
    if (want.store && model.store != *want.store) continue;
    if (model.name == want.name) return model;
    if (is_repository && model.name.starts_with(want.name + "/")) {
      files.push_back(model.name);
    }
  }
  if (!files.empty()) refuse_several(name, files);
  return find_nearly(local, want);
}

}  // namespace headroom
