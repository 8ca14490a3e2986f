// Built-in presets and the user's.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config_reader.h"
#include "embedded_json.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "json_text.h"
#include "user_folder.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

/// The repository that a preset's source names: "Hugging Face repository ORG/NAME, …".
std::string repository_in(std::string_view source) {
  constexpr std::string_view kBefore = "Hugging Face repository ";
  const auto begin = source.find(kBefore);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = source.substr(begin + kBefore.size());
  return std::string(rest.substr(0, rest.find_first_of(" ,;:\"")));
}

/// The line of an embedded preset's source. It is not parsed, since that takes long for all.
std::string_view source_line(std::string_view json) {
  const auto begin = json.find("\"source\": \"");
  if (begin == std::string_view::npos) return {};
  return json.substr(begin, json.find('\n', begin) - begin);
}

Preset parse_user_preset(const fs::path& file) {
  Preset preset;
  preset.origin = file.string();
  preset.json = detail::read_text_file(preset.origin);
  const nlohmann::json document = detail::parse_json(preset.json, preset.origin);
  detail::ConfigReader reader(document, preset.origin);
  preset.name = reader.text_or({"name"}, file.stem().string());
  preset.aliases = reader.texts("aliases");
  preset.repository = repository_in(reader.text_or({"source"}, ""));
  return preset;
}

std::vector<Preset> user_presets() {
  std::vector<Preset> presets;
  for (const fs::path& file : detail::json_files_of(detail::own_folders().presets)) {
    presets.push_back(parse_user_preset(file));
  }
  const fs::path own = detail::user_data_folder();
  if (own.empty()) return presets;
  const fs::path folder = own / "presets" / "models";
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".json") presets.push_back(parse_user_preset(entry.path()));
  }
  return presets;
}

Preset from_embedded(const detail::EmbeddedJson& embedded) {
  Preset preset{std::string(embedded.name),
                {},
                repository_in(source_line(embedded.json)),
                std::string(embedded.json),
                "built in"};
  for (const std::string_view alias : embedded.aliases) preset.aliases.emplace_back(alias);
  return preset;
}

bool is_called(const Preset& preset, std::string_view name) {
  return preset.name == name || std::ranges::find(preset.aliases, name) != preset.aliases.end();
}

ReferenceCount read_reference(detail::ConfigReader reader) {
  ReferenceCount reference;
  reference.parameters = reader.size({"parameters"});
  reference.rounded =
      reader.choice_or<bool>({"precision"}, {{"exact", false}, {"rounded", true}}, false);
  reference.source = reader.text_or({"source"}, "");
  reader.require_all_read();
  return reference;
}

/// The published config with the keys that the preset states in place of the file's own.
nlohmann::json config_of(const nlohmann::json& preset, detail::ConfigReader& reader) {
  if (!reader.object("config")) reader.fail("config", "is missing", "add the model's config keys");
  nlohmann::json config = preset.at("config");
  if (reader.object("overrides")) config.update(preset.at("overrides"));
  return config;
}

}  // namespace

std::vector<Preset> list_presets() {
  std::vector<Preset> presets = user_presets();
  for (const detail::EmbeddedJson& embedded : detail::embedded_presets()) {
    const auto same_name = [&](const Preset& own) { return own.name == embedded.name; };
    if (std::ranges::none_of(presets, same_name)) presets.push_back(from_embedded(embedded));
  }
  std::ranges::sort(presets, {}, &Preset::name);
  return presets;
}

std::optional<Preset> find_preset(std::string_view name_or_alias) {
  for (Preset& preset : user_presets()) {
    if (is_called(preset, name_or_alias)) return std::move(preset);
  }
  for (const detail::EmbeddedJson& embedded : detail::embedded_presets()) {
    const bool called =
        embedded.name == name_or_alias ||
        std::ranges::find(embedded.aliases, name_or_alias) != embedded.aliases.end();
    if (called) return from_embedded(embedded);
  }
  return std::nullopt;
}

Model read_preset(const Preset& preset) {
  const std::string file =
      preset.origin == "built in" ? fmt::format("preset {}", preset.name) : preset.origin;
  const nlohmann::json document = detail::parse_json(preset.json, file);
  detail::ConfigReader reader(document, file);
  reader.ignore({"name", "aliases"});
  Model model;
  model.source = reader.text_or({"source"}, "");
  if (auto reference = reader.object("reference")) model.reference = read_reference(*reference);
  const nlohmann::json config = config_of(document, reader);
  reader.require_all_read();
  model.spec = read_model_spec(config.dump(), file + ", config", preset.name);
  return model;
}

}  // namespace headroom
