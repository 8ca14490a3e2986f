// Models in the stores of other programs on this machine: the Hugging Face cache, Ollama's
// manifests and blobs, and LM Studio's folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

enum class ModelStore { hugging_face, ollama, lm_studio };

/// The word in JSON: "hugging_face", "ollama", "lm_studio".
[[nodiscard]] std::string_view name_of(ModelStore store) noexcept;
/// In a sentence: "the Hugging Face cache".
[[nodiscard]] std::string_view description_of(ModelStore store) noexcept;

/// Kind of files that hold a model.
enum class LocalFormat {
  safetensors,
  gguf,
  pytorch,  ///< weights that headroom does not read, next to a config.json that it does
  config,   ///< config.json without weights
};

[[nodiscard]] std::string_view name_of(LocalFormat format) noexcept;

/// One model of a store.
struct LocalModel {
  std::string name;  ///< as `load_model` takes it: "Qwen/Qwen3-8B", "llama3.2:1b"
  ModelStore store = ModelStore::hugging_face;
  LocalFormat format = LocalFormat::safetensors;
  std::string path;        ///< the folder of its config.json, or its GGUF file
  std::int64_t bytes = 0;  ///< of its weight files
};

/// Something in a store that cannot be read: a dangling link, a broken manifest.
struct StoreProblem {
  std::string name;  ///< of the model
  std::string message;
};

struct LocalModels {
  std::vector<LocalModel> models;  ///< by store, then by name
  std::vector<StoreProblem> problems;
};

/// Lists the models of all stores, by names and sizes of files; it opens no weights. Looks in
/// $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub; in $OLLAMA_MODELS, ~/.ollama/models or
/// the folder of Ollama's Linux service; in ~/.lmstudio/models and ~/.cache/lm-studio/models.
[[nodiscard]] LocalModels list_local_models();

/// The model of this name; "ollama:NAME" looks in Ollama's store only, and a name there without a
/// tag means "latest". Empty if there is none. Throws Error{invalid_input} if the name is that of a
/// folder with several GGUF models.
[[nodiscard]] std::optional<LocalModel> find_local_model(const LocalModels& local,
                                                         const std::string& name);

}  // namespace headroom
