#include "user_folder.h"

#include <cstdlib>

namespace headroom::detail {
namespace {

/// A folder that the environment names; empty where it names none. Every command runs on one thread
/// when it asks.
std::filesystem::path folder_in(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path user_data_folder() {
  // The specification has a relative path passed over.
  if (const auto data = folder_in("XDG_DATA_HOME"); data.is_absolute()) return data / "headroom";
  const auto home = folder_in("HOME");
  return home.empty() ? home : home / ".local" / "share" / "headroom";
}

}  // namespace headroom::detail
