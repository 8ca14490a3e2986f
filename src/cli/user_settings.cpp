#include "user_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "command_line.h"
#include "headroom/error.h"
#include "json_text.h"
#include "options.h"
#include "similar.h"
#include "user_folder.h"

namespace headroom::cli {
namespace {

namespace fs = std::filesystem;

struct KeyInfo {
  SettingKey key;
  const char* name;
  const char* variable;
};

constexpr std::array<KeyInfo, 5> kKeys{{
    {SettingKey::machine, "machine", "HEADROOM_MACHINE"},
    {SettingKey::threads, "threads", "HEADROOM_THREADS"},
    {SettingKey::format, "format", "HEADROOM_FORMAT"},
    {SettingKey::presets, "presets", "HEADROOM_PRESETS"},
    {SettingKey::machines, "machines", "HEADROOM_MACHINES"},
}};

std::optional<UserSetting>& member_of(UserSettings& settings, SettingKey key) {
  switch (key) {
    case SettingKey::machine:
      return settings.machine;
    case SettingKey::threads:
      return settings.threads;
    case SettingKey::format:
      return settings.format;
    case SettingKey::presets:
      return settings.presets;
    case SettingKey::machines:
      break;
  }
  return settings.machines;
}

/// Empty if the variable is unset.
std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// With "~" for the home folder.
std::string shown(const fs::path& path) {
  const std::string home = detail::folder_in("HOME").string();
  const std::string text = path.string();
  return !home.empty() && text.starts_with(home + "/") ? "~" + text.substr(home.size()) : text;
}

/// A folder as it is written: "~/…" in the home folder, else relative to `base`.
fs::path folder_of(const std::string& text, const fs::path& base) {
  if (text == "~" || text.starts_with("~/")) {
    return detail::folder_in("HOME") / fs::path(text.substr(std::min<std::size_t>(2, text.size())));
  }
  return base / text;
}

/// Lists are written as in a PATH.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  names.reserve(kKeys.size());
  for (const KeyInfo& info : kKeys) names.emplace_back(info.name);
  return names;
}

[[noreturn]] void refuse_key(const std::string& name, const std::string& file) {
  const std::vector<std::string> names = key_names();
  std::string hint = detail::did_you_mean(name, names);
  if (!hint.empty()) hint += " ";
  throw Error(ErrorCode::invalid_input, fmt::format("unknown key \"{}\"", name), file,
              fmt::format("{}The keys are {}", hint, fmt::join(names, ", ")));
}

[[noreturn]] void refuse_setting(const UserSetting& setting, const std::string& message,
                                 const std::string& hint) {
  throw Error(ErrorCode::invalid_input, fmt::format("{} {}", setting.name, message), setting.source,
              hint);
}

const KeyInfo& key_named(const std::string& name, const std::string& file) {
  const auto info = std::ranges::find_if(kKeys, [&](const KeyInfo& k) { return k.name == name; });
  if (info == kKeys.end()) refuse_key(name, file);
  return *info;
}

bool is_list(SettingKey key) { return key == SettingKey::presets || key == SettingKey::machines; }

void read_file(UserSettings& settings) {
  const std::string file = shown(settings.file);
  for (const ConfigurationEntry& entry :
       parse_configuration(detail::read_text_file(settings.file.string()), file)) {
    const KeyInfo& info = key_named(entry.key, file);
    const UserSetting setting{info.name, fmt::format("{}", fmt::join(entry.values, ":")), file};
    if (!is_list(info.key) && entry.values.size() != 1) {
      refuse_setting(setting, "takes one value",
                     fmt::format("write one line, such as {} = …", info.name));
    }
    if (member_of(settings, info.key)) refuse_setting(setting, "is repeated", "keep one line");
    member_of(settings, info.key) = setting;
  }
}

void read_variables(UserSettings& settings) {
  for (const KeyInfo& info : kKeys) {
    const auto value = variable(info.variable);
    if (!value) continue;
    auto& member = member_of(settings, info.key);
    member.reset();
    if (!value->empty()) member = UserSetting{info.name, *value, info.variable};
  }
}

constexpr std::string_view kPrefix = "HEADROOM_";

/// Variables that headroom's library, build and tests read.
constexpr std::array<std::string_view, 5> kOtherVariables{"HEADROOM_CONFIG", "HEADROOM_CMAKE_ARGS",
                                                          "HEADROOM_LIBRARY", "HEADROOM_FAULT",
                                                          "HEADROOM_FAULT_LOG"};

std::vector<std::string> known_variables() {
  std::vector<std::string> known{"HEADROOM_CONFIG"};
  for (const KeyInfo& info : kKeys) known.emplace_back(info.variable);
  return known;
}

std::string warning_on(const std::string& name) {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> near;
  for (const std::string& one : known) {
    // The common prefix would make all of them similar.
    const std::vector<std::string> word{one.substr(kPrefix.size())};
    if (!detail::did_you_mean(name.substr(kPrefix.size()), word).empty()) near.push_back(one);
  }
  return fmt::format("the variable {} is not read: {}", name,
                     near.empty() ? fmt::format("headroom reads {}", fmt::join(known, ", "))
                                  : fmt::format("did you mean {}?", fmt::join(near, " or ")));
}

/// Not errors: another program may have a variable of such a name.
std::vector<std::string> warnings_on_variables() {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> warnings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const bool is_known = std::ranges::find(known, name) != known.end() ||
                          std::ranges::find(kOtherVariables, name) != kOtherVariables.end();
    if (name.starts_with(kPrefix) && !is_known) warnings.push_back(warning_on(name));
  }
  return warnings;
}

void find_file(UserSettings& settings) {
  if (const auto named = variable("HEADROOM_CONFIG")) {
    settings.file = *named;
    settings.file_exists = !named->empty();
    return;
  }
  settings.file = detail::user_configuration_file();
  std::error_code failed;
  settings.file_exists = !settings.file.empty() && fs::exists(settings.file, failed);
}

/// Folders of the file are relative to it; those of the environment to the working folder.
std::vector<fs::path> folders_of(const std::optional<UserSetting>& setting,
                                 const UserSettings& settings) {
  std::vector<fs::path> folders;
  if (!setting) return folders;
  const bool of_file = setting->source == shown(settings.file);
  const fs::path base = of_file ? settings.file.parent_path() : fs::path();
  for (const std::string& part : parts_of(setting->value)) {
    folders.push_back(folder_of(part, base));
  }
  return folders;
}

const Choices<Format>& formats() {
  static const Choices<Format> choices{{"table", Format::table}, {"json", Format::json},
                                       {"csv", Format::csv},     {"markdown", Format::markdown},
                                       {"md", Format::markdown}, {"html", Format::html}};
  return choices;
}

std::optional<Format> format_named(const std::string& word) {
  for (const auto& [text, format] : formats()) {
    if (text == word) return format;
  }
  return std::nullopt;
}

void require_threads(const UserSetting& setting) {
  const auto count = count_of(setting.value);
  if (count && *count >= kThreads.least && *count <= kThreads.most) return;
  refuse_setting(
      setting,
      fmt::format("must be from {} to {}, not {}", kThreads.least, kThreads.most, setting.value),
      "leave it out to use all processors");
}

void require_format(const UserSetting& setting) {
  if (format_named(setting.value)) return;
  std::vector<std::string> words;
  words.reserve(formats().size());
  for (const auto& [text, format] : formats()) words.push_back(text);
  const std::string near = detail::did_you_mean(setting.value, words);
  refuse_setting(setting, fmt::format("has the unknown value \"{}\"", setting.value),
                 fmt::format("{}{} values are table, json, csv, markdown, html", near,
                             near.empty() ? "the" : " The"));
}

struct State {
  UserSettings settings;
  std::vector<UserSetting> taken;
};

State& state() {
  thread_local State current;  // programs call commands from several threads
  return current;
}

void take(const UserSetting& setting) {
  std::vector<UserSetting>& taken = state().taken;
  if (std::ranges::find(taken, setting.name, &UserSetting::name) == taken.end()) {
    taken.push_back(setting);
  }
}

}  // namespace

UserSettings read_user_settings() {
  UserSettings settings;
  find_file(settings);
  if (settings.file_exists) read_file(settings);
  read_variables(settings);
  settings.warnings = warnings_on_variables();
  if (settings.threads) require_threads(*settings.threads);
  if (settings.format) require_format(*settings.format);
  settings.preset_folders = folders_of(settings.presets, settings);
  settings.machine_folders = folders_of(settings.machines, settings);
  return settings;
}

void use_settings(const UserSettings& settings) {
  state() = {settings, {}};
  detail::own_folders() = {settings.preset_folders, settings.machine_folders};
}

bool has_user_machine() { return state().settings.machine.has_value(); }

void fill_in_machine(std::string& machine) {
  const std::optional<UserSetting>& setting = state().settings.machine;
  if (!machine.empty() || !setting) return;
  try {
    if (setting->value != "here") (void)find_machine(setting->value);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), setting->source, error.hint());
  }
  machine = setting->value;
  take(*setting);
}

void fill_in_threads(int& threads) {
  const std::optional<UserSetting>& setting = state().settings.threads;
  if (threads != 0 || !setting) return;
  threads = static_cast<int>(count_of(setting->value).value_or(0));
  take(*setting);
}

Format format_or(Format otherwise) {
  const std::optional<UserSetting>& setting = state().settings.format;
  return setting ? format_named(setting->value).value_or(otherwise) : otherwise;
}

const std::vector<UserSetting>& settings_taken() { return state().taken; }

Configuration configuration_in_force() {
  UserSettings& settings = state().settings;
  Configuration configuration{shown(settings.file), settings.file_exists, {}};
  for (const KeyInfo& info : kKeys) {
    if (const auto& setting = member_of(settings, info.key)) {
      configuration.settings.push_back(*setting);
    }
  }
  return configuration;
}

}  // namespace headroom::cli
