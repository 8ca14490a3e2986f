// Sources of a model: a preset, a config.json, a folder with one, or a GGUF file. One reader serves
// them all.
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

/// The model that `name` refers to, by the first that fits: a preset's name or alias; a
/// config.json, a folder with one, a safetensors file next to one, or a GGUF file; a model of a
/// local store (local_models.h); a preset's repository, or a guess at a preset. Its `name_note`
/// says which was taken unless the name is exact. Throws Error{invalid_input} with similar names as
/// a hint if none fits, and with the candidates if several presets do.
[[nodiscard]] Model load_model(const std::string& name);

/// Reads the text of a config.json. `file` appears in errors, `name` becomes the model's name.
/// Throws Error{invalid_input} for any key or value that is not supported.
[[nodiscard]] ModelSpec read_model_spec(std::string_view json, const std::string& file,
                                        std::string name);

}  // namespace headroom
