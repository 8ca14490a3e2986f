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
};

/// A built-in preset or one from the user's folder.
struct Preset {
  std::string name;
  std::vector<std::string> aliases;
  std::string json;    ///< the whole file
  std::string origin;  ///< "built in", or the file's path
};

/// All presets, sorted by name. A user's preset (`$XDG_DATA_HOME/headroom/presets/models/*.json`)
/// replaces the built-in one of that name.
[[nodiscard]] std::vector<Preset> list_presets();

/// The preset with this name or alias; empty if there is none.
[[nodiscard]] std::optional<Preset> find_preset(std::string_view name_or_alias);

/// The model of a preset. Throws Error{invalid_input}.
[[nodiscard]] Model read_preset(const Preset& preset);

/// The model that `name` refers to: a preset or alias, a config.json, a folder with one, a
/// safetensors file next to one, or a GGUF file. Throws Error{invalid_input} with similar names as
/// a hint if none fits.
[[nodiscard]] Model load_model(const std::string& name);

/// Reads the text of a config.json. `file` appears in errors, `name` becomes the model's name.
/// Throws Error{invalid_input} for any key or value that is not supported.
[[nodiscard]] ModelSpec read_model_spec(std::string_view json, const std::string& file,
                                        std::string name);

}  // namespace headroom
