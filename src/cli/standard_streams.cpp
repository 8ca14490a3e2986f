#include "standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>

#include "output_file.h"
#include "processes.h"

namespace headroom::cli {
namespace {

/// Returns the error number of a failed write; 0 if all was written.
int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

thread_local StreamCapture* t_capture = nullptr;

}  // namespace

StreamCapture::StreamCapture() noexcept : outer_(t_capture) { t_capture = this; }

StreamCapture::~StreamCapture() { t_capture = outer_; }

// mpirun gives every process a terminal of its own, which is not the reader's.
bool is_output_terminal() noexcept {
  return t_capture == nullptr && isatty(STDOUT_FILENO) == 1 &&
         distributed::launched_processes() == 1;
}

bool is_error_terminal() noexcept {
  return t_capture == nullptr && isatty(STDERR_FILENO) == 1 &&
         distributed::launched_processes() == 1;
}

void prepare_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_closed = fcntl(descriptor, F_GETFD) < 0 && errno == EBADF;  // NOLINT: variadic
    // The lowest free number is this one. Read-only: writing fails, as it does when closed.
    if (is_closed) (void)open("/dev/null", O_RDONLY);  // NOLINT: variadic
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void write_standard_output(std::string_view text) {
  if (t_capture != nullptr) {
    t_capture->output_ += text;
    return;
  }
  const int failed = write_all(STDOUT_FILENO, text);
  if (failed == 0) return;
  if (failed == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    (void)std::raise(SIGPIPE);
  }
  detail::throw_unwritable("standard output", std::generic_category().message(failed));
}

void write_standard_error(std::string_view text) noexcept {
  if (t_capture == nullptr) {
    (void)write_all(STDERR_FILENO, text);
    return;
  }
  try {
    t_capture->messages_ += text;
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): losing a message is no error
  }
}

}  // namespace headroom::cli
