// Settings of the user: values of a configuration file and of the environment for options that a
// command line leaves out. The environment precedes the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/report.h"
#include "headroom/system.h"

namespace headroom::cli {

/// Keys of the file; each has a variable, such as HEADROOM_MACHINE.
enum class SettingKey { machine, threads, format, presets, machines };

/// All settings that are in force; none if a program calls headroom as a library.
struct UserSettings {
  std::optional<UserSetting> machine;
  std::optional<UserSetting> threads;
  std::optional<UserSetting> format;
  std::optional<UserSetting> presets;
  std::optional<UserSetting> machines;
  std::vector<std::filesystem::path> preset_folders;
  std::vector<std::filesystem::path> machine_folders;
  std::filesystem::path file;  ///< that was looked for; empty for none
  bool file_exists = false;
  std::vector<std::string> warnings{};  ///< on variables that look like headroom's, and are not
};

/// Reads $HEADROOM_CONFIG, by default $XDG_CONFIG_HOME/headroom.toml, and the variables. An empty
/// variable unsets the file's value; an empty HEADROOM_CONFIG reads no file. Throws
/// Error{invalid_input} for unknown keys and bad values, Error{missing_resource} for a file of
/// HEADROOM_CONFIG that cannot be read.
[[nodiscard]] UserSettings read_user_settings();

/// Puts `settings` in force for the commands of this thread.
void use_settings(const UserSettings& settings);

/// True if `fill_in_machine` would set a machine.
[[nodiscard]] bool has_user_machine();
/// Sets `machine` to the user's if it is empty. Throws Error{invalid_input} if the user's does not
/// exist.
void fill_in_machine(std::string& machine);
/// Sets `threads` to the user's if it is 0.
void fill_in_threads(int& threads);
/// The user's format; `otherwise` without one.
[[nodiscard]] Format format_or(Format otherwise);

/// Those that the running command took in place of options.
[[nodiscard]] const std::vector<UserSetting>& settings_taken();

/// The file and its values, for `headroom system`.
[[nodiscard]] Configuration configuration_in_force();

}  // namespace headroom::cli
