#include "user_folder.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

/// The folder of an XDG variable, or `fallback` in the home folder. The specification ignores
/// relative paths.
fs::path xdg_folder(const char* variable, const fs::path& fallback) {
  if (fs::path folder = folder_in(variable); folder.is_absolute()) return folder;
  const fs::path home = folder_in("HOME");
  return home.empty() ? home : home / fallback;
}

}  // namespace

fs::path folder_in(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

fs::path user_data_folder() {
  const fs::path folder = xdg_folder("XDG_DATA_HOME", fs::path(".local") / "share");
  return folder.empty() ? folder : folder / "headroom";
}

fs::path user_configuration_file() {
  const fs::path folder = xdg_folder("XDG_CONFIG_HOME", ".config");
  return folder.empty() ? folder : folder / "headroom.toml";
}

OwnFolders& own_folders() noexcept {
  thread_local OwnFolders folders;  // programs call commands from several threads
  return folders;
}

std::vector<fs::path> json_files_of(const std::vector<fs::path>& folders) {
  std::vector<fs::path> files;
  for (const fs::path& folder : folders) {
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    if (failed) {
      throw Error(ErrorCode::missing_resource, failed.message(), folder.string(),
                  "correct the folder in the configuration, or create it");
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace headroom::detail
