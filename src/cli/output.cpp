// Output of reports: standard output, or a file that is written whole or not at all.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "options.h"
#include "setting_options.h"
#include "whole_file.h"

namespace headroom::cli {
namespace {

void write_standard_output(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    detail::throw_unwritable("standard output", std::generic_category().message(errno));
  }
}

bool is_terminal(const OutputOptions& options) {
  return options.file.empty() && isatty(STDOUT_FILENO) == 1;
}

std::size_t terminal_width() {
  winsize size{};
  // ioctl is variadic, but nothing else reports a terminal's width.
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;  // NOLINT
  return known ? size.ws_col : 0;
}

}  // namespace

RenderOptions render_options(const OutputOptions& options, Detail detail) {
  RenderOptions render{options.format, detail, 0, Colour::off};
  if (!is_terminal(options)) return render;
  render.width = terminal_width();
  // https://no-color.org: no colour if set and not empty.
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
    detail::write_whole_file(options.file, text);
  }
  if (options.quiet) return;
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", with_options(note));
}

}  // namespace headroom::cli
