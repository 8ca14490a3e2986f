#include "user_folder.h"

#include <cstdlib>

namespace headroom::detail {

std::filesystem::path folder_in(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

std::filesystem::path user_data_folder() {
  // The specification ignores relative paths.
  if (const auto data = folder_in("XDG_DATA_HOME"); data.is_absolute()) return data / "headroom";
  const auto home = folder_in("HOME");
  return home.empty() ? home : home / ".local" / "share" / "headroom";
}

}  // namespace headroom::detail
