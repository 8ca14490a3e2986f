#include "whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

/// Writes to `path`; errors name `file`.
void write_stream(const fs::path& path, const std::function<void(std::ostream&)>& write,
                  const fs::path& file) {
  std::ofstream stream(path, std::ios::binary);
  write(stream);
  stream.close();
  if (!stream) throw_unwritable(file.string(), std::generic_category().message(errno));
}

}  // namespace

void throw_unwritable(const std::string& file, const std::string& reason) {
  throw Error(ErrorCode::missing_resource, "cannot be written: " + reason, file,
              "check the folder, its permissions and the free space");
}

void write_whole_file(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write_stream(file, write, file);
    return;
  }
  const fs::path temporary = fmt::format("{}.{}.tmp", file.string(), getpid());
  try {
    write_stream(temporary, write, file);
    fs::rename(temporary, file, failed);
    if (failed) throw_unwritable(file.string(), failed.message());
  } catch (...) {
    fs::remove(temporary, failed);
    throw;
  }
}

void write_whole_file(const fs::path& file, std::string_view text) {
  write_whole_file(file, [text](std::ostream& stream) { stream << text; });
}

}  // namespace headroom::detail
