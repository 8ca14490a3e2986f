#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace headroom::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

extern "C" void on_interrupt(int /*signal*/) { g_interrupted = 1; }

bool has_terminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace

void catch_interrupt() { std::signal(SIGINT, on_interrupt); }

bool interrupted() noexcept { return g_interrupted != 0; }

bool show_progress(double fraction, std::string_view text) {
  if (has_terminal()) {
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(kWidth * fraction);
    fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {}\033[K", "", filled, "", kWidth - filled, text);
    std::fflush(stderr);
  }
  return !interrupted();
}

void clear_progress() {
  if (has_terminal()) fmt::print(stderr, "\r\033[K");
}

}  // namespace headroom::cli
