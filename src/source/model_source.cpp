#include "headroom/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "checkpoint.h"
#include "companion_files.h"
#include "folder_contents.h"
#include "gguf/gguf_config.h"
#include "gguf_split.h"
#include "headroom/error.h"
#include "json_text.h"
#include "layouts/layouts.h"
#include "model_files.h"
#include "path_names.h"
#include "preset_names.h"
#include "quantization/quantization.h"
#include "similar.h"
#include "stores.h"
#include "towers/pixel_limits.h"

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

/// The file that belongs to a config, such as hf_quant_config.json with `beginning` "hf_quant_":
/// "x.config.json" has "x.hf_quant_config.json". Empty if there is none.
fs::path file_beside(const fs::path& config, std::string_view beginning) {
  constexpr std::string_view kName = "config.json";
  const std::string name = config.filename().string();
  if (!name.ends_with(kName)) return {};
  fs::path file =
      config.parent_path() /
      fmt::format("{}{}{}", name.substr(0, name.size() - kName.size()), beginning, kName);
  std::error_code failed;
  return fs::exists(file, failed) ? file : fs::path();
}

/// Ties a head that the files lack to the word embeddings, where the class does so. Commands that
/// read the weights report files that cannot be read.
void tie_absent_head(ModelSpec& spec, const fs::path& weight_files) {
  auto& head = spec.head.language_model;
  const bool may_be_absent =
      head && head->shared_if_absent && head->weight == WeightSharing::separate;
  const bool is_part = checkpoint::part_name(weight_files.filename().string()).has_value();
  if (!may_be_absent || weight_files.empty() || is_part) return;
  try {
    const checkpoint::Checkpoint files(weight_files);
    if (files.find("lm_head.weight") == nullptr) head->weight = WeightSharing::shared;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
  }
}

Model read_config_file(const fs::path& file, std::string name, std::string weight_files) {
  ModelSpec spec =
      read_model_spec(detail::read_text_file(file.string()), file.string(), std::move(name));
  const fs::path quantization = file_beside(file, "hf_quant_");
  if (!quantization.empty()) {
    detail::read_quantization_file(detail::read_text_file(quantization.string()),
                                   quantization.string(), spec);
  }
  const fs::path preprocessor = file_beside(file, "preprocessor_");
  if (!preprocessor.empty()) {
    detail::read_pixel_limits(detail::read_text_file(preprocessor.string()), preprocessor.string(),
                              spec);
  }
  tie_absent_head(spec, weight_files);
  return {std::move(spec), file.string(), std::nullopt, std::move(weight_files)};
}

/// Reads the model of `path` and, if that is part of a split, of all its parts: the first has the
/// metadata, and any may have the tensors that tell the head and biases.
Model read_gguf_file(const fs::path& path) {
  const std::vector<checkpoint::GgufFile> parts = checkpoint::open_gguf_parts(path);
  const std::string& first = parts.front().path();
  checkpoint::GgufContent content = parts.front().content();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto& tensors = parts[i].content().tensors;
    content.tensors.insert(content.tensors.end(), tensors.begin(), tensors.end());
  }
  return {read_model_spec(detail::config_from_gguf(content, first), first,
                          fs::path(first).stem().string()),
          first, std::nullopt, first};
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

/// Names of presets and of local models, for a hint.
std::vector<std::string> known_names(const LocalModels& local) {
  std::vector<std::string> known;
  for (const Preset& preset : list_presets()) {
    known.push_back(preset.name);
    known.insert(known.end(), preset.aliases.begin(), preset.aliases.end());
  }
  for (const LocalModel& model : local.models) known.push_back(model.name);
  return known;
}

/// "did you mean …?" with names close to `name`, or the longest that it begins with; else empty.
std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  std::string guess = detail::did_you_mean(name, known);
  const std::string model = detail::lower_case(name.substr(name.find_last_of('/') + 1));
  if (guess.empty()) guess = detail::did_you_mean(model, known);
  if (!guess.empty()) return guess;
  std::string longest;
  for (const std::string& candidate : known) {
    if (model.starts_with(candidate + "-") && candidate.size() > longest.size()) {
      longest = candidate;
    }
  }
  return longest.empty() ? longest : fmt::format("did you mean {}?", longest);
}

/// Refuses an address, with the owner and the name that may stand behind its host.
void refuse_address(const std::string& name) {
  if (!name.starts_with("https://") && !name.starts_with("http://")) return;
  const std::string path = name.substr(name.find("://") + 3);
  const std::size_t host = path.find('/');
  const std::size_t owner = host == std::string::npos ? host : path.find('/', host + 1);
  const std::size_t end = owner == std::string::npos ? owner : path.find_first_of("/?#", owner + 1);
  const std::string repository =
      owner == std::string::npos ? std::string() : path.substr(host + 1, end - host - 1);
  throw Error(
      ErrorCode::invalid_input, "is an address, and headroom does not use the network", name,
      repository.empty()
          ? "download the model's config.json and name the file"
          : fmt::format("name {}, or download its config.json and name the file", repository));
}

/// Where to look for a name that is close to none: presets that begin with its first word.
std::string where_to_look(const std::string& name, const std::vector<std::string>& known) {
  const std::string word = detail::lower_case(name.substr(0, name.find_first_of("-_. 0123456789")));
  const bool begins_some =
      word.size() > 2 &&
      std::ranges::any_of(known, [&](const std::string& one) { return one.starts_with(word); });
  return fmt::format("list the presets with `headroom presets{}`, or give a config.json",
                     begins_some ? " " + word : std::string());
}

[[noreturn]] void throw_unknown(const std::string& name, const LocalModels& local) {
  refuse_address(name);
  const auto broken = std::ranges::find(local.problems, name, &StoreProblem::name);
  if (broken != local.problems.end()) {
    throw Error(ErrorCode::invalid_input, "cannot be read from its store", name, broken->message);
  }
  if (detail::names_a_file(name)) detail::throw_no_such_file(name);
  std::string guess = detail::hint_before_quantisation(name);
  const std::vector<std::string> known = known_names(local);
  if (guess.empty()) guess = suggestion(name, known);
  if (guess.empty()) guess = where_to_look(name, known);
  throw Error(ErrorCode::invalid_input, "is not a preset, and no such file or folder exists",
              name.empty() ? "the empty name" : name, guess);
}

/// Refuses a folder without config.json, by what lies there.
[[noreturn]] void throw_no_config(const fs::path& folder, const std::string& weight_files) {
  const checkpoint::FolderContents contents = checkpoint::folder_contents(folder);
  const std::string_view download = "download the model's config.json into it to count the model";
  const std::string hint =
      !weight_files.empty()
          ? fmt::format("{}; `headroom inspect` lists the weights alone", download)
      : contents.pickles.empty()
          ? fmt::format("{}, and its safetensors or GGUF files to run it", download)
          : fmt::format("{}; to run it, {}", download, checkpoint::pickle_hint());
  throw Error(ErrorCode::missing_resource, fmt::format("has no config.json: {}", contents.text()),
              folder.string(), hint);
}

/// The model at an existing path.
Model load_path(const fs::path& path) {
  std::error_code failed;
  if (auto other = detail::read_other_layout(path)) return *std::move(other);
  if (fs::is_directory(path, failed)) {
    const bool has_config = fs::exists(path / "config.json", failed);
    const auto snapshot = has_config ? std::nullopt : detail::snapshot_in(path);
    if (snapshot) return load_path(*snapshot);
    const bool only_gguf = !has_config && !checkpoint::safetensors_in(path);
    const auto gguf = only_gguf ? checkpoint::gguf_in(path) : std::nullopt;
    if (gguf) return read_gguf_file(*gguf);
    if (!has_config) throw_no_config(path, weight_files_at(path));
    return read_config_file(path / "config.json", folder_name(path), weight_files_at(path));
  }
  if (checkpoint::is_gguf(path)) return read_gguf_file(path);
  if (path.extension() == ".safetensors") {
    return read_config_file(fs::absolute(path).parent_path() / "config.json",
                            folder_name(fs::absolute(path).parent_path()), path.string());
  }
  detail::refuse_companion_file(path);
  return read_config_file(path, config_name(path), weight_files_next_to(path));
}

Model load_local(const LocalModel& local) {
  Model model = load_path(local.path);
  model.spec.name = local.name;
  model.name_note =
      fmt::format("{} was taken from {}: {}", local.name, description_of(local.store), local.path);
  return model;
}

Model load_preset(const MatchedPreset& matched, const std::string& typed) {
  Model model = read_preset(matched.preset);
  model.name_note = note_on(matched, typed);
  return model;
}

/// A note if a path could be meant as a preset; empty otherwise.
std::string note_on_path(const std::string& name) {
  const std::vector<Preset> presets = detail::presets_like(name);
  if (presets.empty()) return {};
  return fmt::format("{} is a path: took it, not the preset {}", name, presets.front().name);
}

}  // namespace

Model load_model(const std::string& name) {
  if (name == "-") return read_config_file("-", "stdin", {});
  std::error_code failed;
  const bool is_path = fs::exists(name, failed);
  if (const auto preset = find_preset(name)) {
    Model model = read_preset(*preset);
    if (is_path) {
      model.name_note =
          fmt::format("{0} is a preset and a path: took the preset; ./{0} is the path", name);
    }
    return model;
  }
  if (is_path) {
    Model model = load_path(name);
    model.name_note = note_on_path(name);
    return model;
  }
  const LocalModels local = list_local_models();
  if (const auto model = find_local_model(local, name)) return load_local(*model);
  if (const auto matched = match_preset(name)) return load_preset(*matched, name);
  throw_unknown(name, local);
}

}  // namespace headroom
