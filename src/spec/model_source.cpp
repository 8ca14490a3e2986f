#include "headroom/model_source.h"

#include <filesystem>
#include <optional>

#include "checkpoint.h"
#include "gguf/gguf_config.h"
#include "headroom/error.h"
#include "json_text.h"
#include "quantization/quantization.h"
#include "similar.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

/// `path` if safetensors lie there, or nothing.
std::string weight_files_at(const fs::path& path) {
  return checkpoint::Checkpoint::exists(path) ? path.string() : std::string();
}

/// The weights next to a config of this name; a config of another name describes no folder.
std::string weight_files_next_to(const fs::path& config) {
  if (config.filename() != "config.json") return {};
  return weight_files_at(fs::absolute(config).parent_path());
}

/// The hf_quant_config.json that belongs to a config: "x.config.json" has "x.hf_quant_config.json".
fs::path quantization_file_of(const fs::path& config) {
  constexpr std::string_view kName = "config.json";
  const std::string name = config.filename().string();
  if (!name.ends_with(kName)) return {};
  return config.parent_path() /
         (name.substr(0, name.size() - kName.size()) + "hf_quant_" + std::string(kName));
}

Model read_config_file(const fs::path& file, std::string name, std::string weight_files) {
  ModelSpec spec =
      read_model_spec(detail::read_text_file(file.string()), file.string(), std::move(name));
  const fs::path quantization = quantization_file_of(file);
  std::error_code failed;
  if (!quantization.empty() && fs::exists(quantization, failed)) {
    detail::read_quantization_file(detail::read_text_file(quantization.string()),
                                   quantization.string(), spec);
  }
  return {std::move(spec), file.string(), std::nullopt, std::move(weight_files)};
}

Model read_gguf_file(const fs::path& path) {
  const checkpoint::GgufFile file(path);
  return {read_model_spec(detail::config_from_gguf(file.content(), path.string()), path.string(),
                          path.stem().string()),
          path.string(), std::nullopt, path.string()};
}

/// The folder's name, also with a trailing slash or as ".".
std::string folder_name(const fs::path& folder) {
  const fs::path full = fs::weakly_canonical(folder);
  return full.filename().string();
}

/// A config.json takes its folder's name.
std::string config_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  return stem == "config" ? folder_name(fs::absolute(file).parent_path()) : stem;
}

[[noreturn]] void throw_unknown(const std::string& name) {
  std::vector<std::string> known;
  for (const Preset& preset : list_presets()) {
    known.push_back(preset.name);
    known.insert(known.end(), preset.aliases.begin(), preset.aliases.end());
  }
  const std::string guess = detail::did_you_mean(name, known);
  throw Error(
      ErrorCode::invalid_input, "is not a preset, and no such file or folder exists",
      name.empty() ? "the empty name" : name,
      guess.empty() ? "list the presets with `headroom presets`, or give a config.json" : guess);
}

}  // namespace

Model load_model(const std::string& name) {
  const fs::path path(name);
  std::error_code failed;
  if (const auto preset = find_preset(name)) return read_preset(*preset);
  if (fs::is_directory(path, failed)) {
    return read_config_file(path / "config.json", folder_name(path), weight_files_at(path));
  }
  if (checkpoint::is_gguf(path)) return read_gguf_file(path);
  if (path.extension() == ".safetensors" && fs::exists(path, failed)) {
    return read_config_file(fs::absolute(path).parent_path() / "config.json",
                            folder_name(fs::absolute(path).parent_path()), path.string());
  }
  if (fs::exists(path, failed)) {
    return read_config_file(path, config_name(path), weight_files_next_to(path));
  }
  throw_unknown(name);
}

}  // namespace headroom
