#include "path_names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// Returns true if a folder has the name before the first slash, which else may be an owner's.
bool is_in_a_folder(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  std::error_code failed;
  return std::filesystem::is_directory(name.substr(0, slash), failed);
}

}  // namespace

bool names_a_file(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kStarts{"/", "./", "../", "~"};
  static constexpr std::array<std::string_view, 4> kEndings{"/", ".json", ".gguf", ".safetensors"};
  const auto starts = [&](std::string_view start) { return name.starts_with(start); };
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return std::ranges::any_of(kStarts, starts) || std::ranges::any_of(kEndings, ends) ||
         is_in_a_folder(name);
}

void throw_no_such_file(const std::string& path) {
  throw Error(ErrorCode::missing_resource, "no such file or folder exists", path,
              "check the path and its permissions");
}

}  // namespace headroom::detail
