// Folders of the user's files.
#pragma once

#include <filesystem>
#include <vector>

namespace headroom::detail {

/// The folder named by an environment variable; empty if it is unset. Commands ask on one thread.
[[nodiscard]] std::filesystem::path folder_in(const char* variable);

/// $XDG_DATA_HOME/headroom, by default ~/.local/share/headroom; empty without a home
/// folder. Source: XDG Base Directory Specification 0.8, "Environment variables".
[[nodiscard]] std::filesystem::path user_data_folder();

/// $XDG_CONFIG_HOME/headroom.toml, by default ~/.config/headroom.toml; empty without a home folder.
[[nodiscard]] std::filesystem::path user_configuration_file();

/// Folders of a user's JSON files beside those of user_data_folder().
struct OwnFolders {
  std::vector<std::filesystem::path> presets;
  std::vector<std::filesystem::path> machines;
};

/// The folders of this thread, empty until they are set.
[[nodiscard]] OwnFolders& own_folders() noexcept;

/// The files NAME.json of these folders, sorted by path. Throws Error{missing_resource} for a
/// folder that cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> json_files_of(
    const std::vector<std::filesystem::path>& folders);

}  // namespace headroom::detail
