// Folder of the user's files.
#pragma once

#include <filesystem>

namespace headroom::detail {

/// The folder named by an environment variable; empty if it is unset. Commands ask on one thread.
[[nodiscard]] std::filesystem::path folder_in(const char* variable);

/// $XDG_DATA_HOME/headroom, by default ~/.local/share/headroom; empty without a home
/// folder. Source: XDG Base Directory Specification 0.8, "Environment variables".
[[nodiscard]] std::filesystem::path user_data_folder();

}  // namespace headroom::detail
