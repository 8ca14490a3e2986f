// Reports out: standard output, or a file that is written whole or not at all.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "headroom/error.h"
#include "options.h"

namespace headroom::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_unwritable(const std::string& file, const std::string& reason) {
  throw Error(ErrorCode::missing_resource, "cannot be written: " + reason, file,
              "check the folder, its permissions and the space left");
}

std::string reason_of(int error) { return std::generic_category().message(error); }

void write_stream(const fs::path& path, const std::string& text, const std::string& file) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) throw_unwritable(file, reason_of(errno));
}

/// Writes beside the file first, so that a failure leaves what was there before.
void write_file(const std::string& file, const std::string& text) {
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  // A pipe or a device cannot be replaced.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write_stream(file, text, file);
    return;
  }
  const fs::path temporary = fmt::format("{}.{}.tmp", file, getpid());
  try {
    write_stream(temporary, text, file);
    fs::rename(temporary, file, failed);
    if (failed) throw_unwritable(file, failed.message());
  } catch (...) {
    fs::remove(temporary, failed);
    throw;
  }
}

void write_standard_output(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw_unwritable("standard output", reason_of(errno));
  }
}

bool is_terminal(const OutputOptions& options) {
  return options.file.empty() && isatty(STDOUT_FILENO) == 1;
}

std::size_t terminal_width() {
  winsize size{};
  // ioctl is variadic by its nature; it is the only way to ask a terminal.
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;  // NOLINT
  return known ? size.ws_col : 0;
}

}  // namespace

RenderOptions render_options(const OutputOptions& options, Detail detail) {
  RenderOptions render{options.format, detail, 0, Colour::off};
  if (!is_terminal(options)) return render;
  render.width = terminal_width();
  // https://no-color.org: set and not empty means none.
  const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  const bool plain = no_color != nullptr && *no_color != '\0';
  render.colour = plain ? Colour::off : Colour::on;
  return render;
}

void write_output(const std::string& text, const std::vector<std::string>& notes,
                  const OutputOptions& options) {
  if (options.file.empty()) {
    write_standard_output(text);
  } else {
    write_file(options.file, text);
  }
  if (options.quiet) return;
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
}

}  // namespace headroom::cli
