// Where a user's own files are kept.
#pragma once

#include <filesystem>

namespace headroom::detail {

/// $XDG_DATA_HOME/headroom, or ~/.local/share/headroom where that is not set; empty without a home
/// folder. Source: XDG Base Directory Specification 0.8, "Environment variables".
[[nodiscard]] std::filesystem::path user_data_folder();

}  // namespace headroom::detail
