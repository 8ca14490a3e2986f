// Where a model comes from: a preset, a config.json, a folder that holds one, or a GGUF file. All
// of them go through the same reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom {

/// A parameter count that somebody else published or computed.
struct ReferenceCount {
  std::int64_t parameters = 0;
  bool rounded = false;  ///< published as "65 M", so that only its leading digits can agree
  std::string source;
};

/// A model with what is known about it from elsewhere.
struct Model {
  ModelSpec spec;
  std::string source;  ///< the preset's source, or the file that was read
  std::optional<ReferenceCount> reference;
  std::string weight_files;  ///< file or folder of its weights; empty for a config without weights
};

/// A preset as it was compiled in, or found in the user's own folder.
struct Preset {
  std::string name;
  std::vector<std::string> aliases;
  std::string json;    ///< the whole file
  std::string origin;  ///< "built in", or the file's path
};

/// All presets, sorted by name; the user's own (`$XDG_DATA_HOME/headroom/presets/models/*.json`)
/// stand in for built-in ones of the same name.
[[nodiscard]] std::vector<Preset> list_presets();

/// The preset of this name or alias; empty when there is none.
[[nodiscard]] std::optional<Preset> find_preset(std::string_view name_or_alias);

/// The model that a preset describes. Throws Error{invalid_input}.
[[nodiscard]] Model read_preset(const Preset& preset);

/// The model that `name` means: a preset or alias, a config.json, a folder with one, a safetensors
/// file with one beside it, or a GGUF file. Throws Error{invalid_input}, with similar names as a
/// hint when nothing fits.
[[nodiscard]] Model load_model(const std::string& name);

/// The spec that the text of a config.json describes. `file` is named in errors, `name` becomes the
/// model's name. Throws Error{invalid_input} for anything that is not understood.
[[nodiscard]] ModelSpec read_model_spec(std::string_view json, const std::string& file,
                                        std::string name);

}  // namespace headroom
