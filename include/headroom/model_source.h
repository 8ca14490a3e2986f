// Sources of a model: a preset, a config.json, a folder with one, a GGUF file, or a model that
// another program keeps on this machine. One reader serves them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom {

/// A published or independently computed parameter count.
struct ReferenceCount {
  std::int64_t parameters = 0;
  bool rounded = false;  ///< published as "65 M": only its leading digits can agree
  std::string source;
};

/// A model and its published figures.
struct Model {
  ModelSpec spec;
  std::string source;  ///< the preset's source, or the file that was read
  std::optional<ReferenceCount> reference;
  std::string weight_files;  ///< file or folder of its weights; empty for a config without weights
  std::string name_note{};   ///< how the typed name was understood; empty if it is exact
};

/// A built-in preset or one from the user's folder.
struct Preset {
  std::string name;
  std::vector<std::string> aliases;
  std::string repository;  ///< on Hugging Face: "Qwen/Qwen3-8B"; empty if its source names none
  std::string json;        ///< the whole file
  std::string origin;      ///< "built in", or the file's path
};

/// All presets, sorted by name. A user's preset (`$XDG_DATA_HOME/headroom/presets/models/*.json`)
/// replaces the built-in one of that name.
[[nodiscard]] std::vector<Preset> list_presets();

/// The preset with this name or alias; empty if there is none.
[[nodiscard]] std::optional<Preset> find_preset(std::string_view name_or_alias);

/// How a typed name fits a preset.
enum class NameMatch {
  name,        ///< its name or an alias
  repository,  ///< its repository
  guess,       ///< a name, alias or repository but for case, organisation or words of a variant
};

struct MatchedPreset {
  Preset preset;
  NameMatch match = NameMatch::name;
};

/// The preset that `typed` means: by name, alias or repository, else by a guess, in which case and
/// the words -instruct, -chat, -hf, -it, -pt and -base do not matter. An organisation that is typed
/// must be that of the preset's repository. Empty if none fits. Throws Error{invalid_input} with
/// the candidates if several do.
[[nodiscard]] std::optional<MatchedPreset> match_preset(std::string_view typed);

/// "gemma-2-9b-it was taken as the preset gemma-2-9b (google/gemma-2-9b)"; empty unless guessed.
[[nodiscard]] std::string note_on(const MatchedPreset& matched, std::string_view typed);

/// The model of a preset. Throws Error{invalid_input}.
[[nodiscard]] Model read_preset(const Preset& preset);

// Models in the stores of other programs: the Hugging Face cache, Ollama's manifests and blobs, and
// LM Studio's folders.

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

// Reading.

/// The model that `name` refers to, by the first that fits: a preset's name or alias; a
/// config.json, a folder with one, a safetensors file next to one, a GGUF file, a LoRA adapter, a
/// sentence-transformers folder, or a folder with Meta's or Mistral's params.json; a model of a
/// local store; a preset's repository, or a guess at a preset. Its `name_note`
/// says which was taken unless the name is exact. Throws Error{invalid_input} with similar names as
/// a hint if none fits, and with the candidates if several presets do.
[[nodiscard]] Model load_model(const std::string& name);

/// Reads the text of a config.json. `file` appears in errors, `name` becomes the model's name.
/// Throws Error{invalid_input} for any key or value that is not supported.
[[nodiscard]] ModelSpec read_model_spec(std::string_view json, const std::string& file,
                                        std::string name);

/// A value of `model_type` that headroom reads.
struct ModelTypeInfo {
  std::string model_type;
  std::string architecture;  ///< its default class
  bool reads_gguf = false;   ///< also from GGUF files
};

/// All of them, sorted by model_type.
[[nodiscard]] std::vector<ModelTypeInfo> list_model_types();

/// Up to three known types with the names nearest to `model_type`; empty if none is near.
[[nodiscard]] std::vector<std::string> nearest_model_types(std::string_view model_type);

}  // namespace headroom
