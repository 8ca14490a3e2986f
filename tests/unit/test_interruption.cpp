// Signals that end a program.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <span>

#include "interruption.h"

using namespace headroom::detail;

namespace {

/// Exits with 0 if a first SIGTERM only asks for the end, and leaves its frame on the handlers'
/// stack. The signal stays noted in this process, so it takes no part in other tests.
[[noreturn]] void exit_after_signal() {
  constexpr std::uint8_t kUntouched = 0xa5;
  handle_end_signals();
  end_at_next_step();
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0) _exit(2);
  const std::span bytes(static_cast<std::uint8_t*>(stack.ss_sp), stack.ss_size);
  std::ranges::fill(bytes, kUntouched);
  if (std::raise(SIGTERM) != 0) _exit(3);
  const bool on_stack =
      std::ranges::any_of(bytes, [](std::uint8_t byte) { return byte != kUntouched; });
  _exit(on_stack && interruption() == SIGTERM ? 0 : 4);
}

}  // namespace

TEST_CASE("a signal that the caller of the program ignores stays ignored, as nohup asks") {
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  std::array<struct sigaction, 3> before{};
  constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    REQUIRE(sigaction(kSignals.at(i), nullptr, &before.at(i)) == 0);
  }
  REQUIRE(sigaction(SIGHUP, &ignored, nullptr) == 0);
  handle_end_signals();
  handle_end_signals();  // keeps the first stack for handlers
  struct sigaction now {};
  REQUIRE(sigaction(SIGHUP, nullptr, &now) == 0);
  CHECK((now.sa_handler == SIG_IGN));
  REQUIRE(sigaction(SIGTERM, nullptr, &now) == 0);
  CHECK((now.sa_handler != SIG_DFL));
  CHECK(interruption() == 0);
  CHECK_NOTHROW(throw_if_interrupted());
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    REQUIRE(sigaction(kSignals.at(i), &before.at(i), nullptr) == 0);
  }
}

TEST_CASE("a signal is handled on a stack of its own, as GEMMs move the stack pointer") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) exit_after_signal();
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
