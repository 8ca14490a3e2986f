// Folder of the user's files.
#pragma once

#include <filesystem>

namespace headroom::detail {

/// $XDG_DATA_HOME/headroom, by default ~/.local/share/headroom; empty without a home
/// folder. Source: XDG Base Directory Specification 0.8, "Environment variables".
[[nodiscard]] std::filesystem::path user_data_folder();

}  // namespace headroom::detail
