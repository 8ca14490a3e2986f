// Reads and writes that a signal interrupts go on, and text from standard input is read to its end.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include "descriptor.h"
#include "json_text.h"
#include "output_file.h"
#include "support/scratch.h"

using headroom::detail::Descriptor;
using headroom::test::ScratchFolder;

namespace {

/// Ends of a pipe that a handler of signals uses: it may touch nothing but such numbers.
std::array<int, 2> g_pipe{-1, -1};
volatile std::sig_atomic_t g_ticks = 0;

/// Calls `handler` every few milliseconds, each time interrupting a call that waits.
class Ticks {
 public:
  explicit Ticks(void (*handler)(int)) {
    g_ticks = 0;
    struct sigaction action {};
    action.sa_handler = handler;  // without SA_RESTART
    sigemptyset(&action.sa_mask);
    REQUIRE(sigaction(SIGALRM, &action, &before_) == 0);
    const timeval interval{0, 5000};
    const itimerval timer{interval, interval};
    REQUIRE(setitimer(ITIMER_REAL, &timer, nullptr) == 0);
  }
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;
  ~Ticks() {
    const itimerval none{};
    setitimer(ITIMER_REAL, &none, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

/// The second tick gives the reader its text.
void write_late(int /*signal*/) {
  g_ticks = g_ticks + 1;
  if (g_ticks != 2) return;
  const int before = errno;
  (void)!write(g_pipe[1], "late", 4);
  close(g_pipe[1]);
  errno = before;
}

/// From the fourth tick on, the pipe is emptied.
void read_late(int /*signal*/) {
  g_ticks = g_ticks + 1;
  if (g_ticks < 4) return;
  const int before = errno;
  std::array<char, 4096> bytes{};
  while (::read(g_pipe[0], bytes.data(), bytes.size()) > 0) {
  }
  errno = before;
}

/// Puts `file` in the place of standard input for its lifetime.
class ScratchInput {
 public:
  explicit ScratchInput(int file) : before_(dup(STDIN_FILENO)) { dup2(file, STDIN_FILENO); }
  ScratchInput(const ScratchInput&) = delete;
  ScratchInput& operator=(const ScratchInput&) = delete;
  ~ScratchInput() {
    if (before_.is_open()) {
      dup2(before_.number(), STDIN_FILENO);
    } else {
      close(STDIN_FILENO);
    }
  }

 private:
  Descriptor before_;
};

}  // namespace

TEST_CASE("standard input is read to its end, past a signal that interrupts the wait") {
  REQUIRE(pipe(g_pipe.data()) == 0);
  const Descriptor reading(g_pipe[0]);
  const ScratchInput input(g_pipe[0]);
  const Ticks ticks(write_late);
  CHECK(headroom::detail::read_text_file("-") == "late");
  CHECK(g_ticks >= 2);
}

TEST_CASE("a pipe that is full is written to its end, past signals that interrupt the wait") {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  g_pipe[0] = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const Descriptor reading(g_pipe[0]);
  REQUIRE(reading.is_open());
  headroom::detail::OutputFile output(path);
  const Ticks ticks(read_late);
  output.write(std::string(200'000, 'x'));  // a pipe holds 64 KiB
  CHECK_NOTHROW(output.commit());
  CHECK(g_ticks >= 4);
}
