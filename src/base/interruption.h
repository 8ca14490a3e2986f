// Signals that end a program: SIGINT, SIGTERM and SIGHUP. Temporary files never outlive them.
#pragma once

#include <exception>
#include <string>

namespace headroom::detail {

/// Thrown by work that a signal ended before it had a result.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

/// Makes the three signals remove temporary files before they end the program. A signal that is
/// ignored, as nohup ignores SIGHUP, stays ignored. Call once, in `main`.
void handle_end_signals();

/// From now on the first signal only sets `interruption`, and the work ends at its next step; a
/// second one ends the program.
void end_at_next_step() noexcept;

/// The signal that asked for the end; 0 if none did.
[[nodiscard]] int interruption() noexcept;

/// Throws Interrupted if a signal asked for the end.
void throw_if_interrupted();

/// Exit status of a program that ended by `signal`, as shells report it: 130 for SIGINT.
[[nodiscard]] constexpr int exit_status_of_signal(int signal) noexcept { return 128 + signal; }

/// A file that the signals above remove. At most a few exist at once; of more, the next run of the
/// program cleans up.
class RemovedOnSignal {
 public:
  explicit RemovedOnSignal(const std::string& path) noexcept;
  ~RemovedOnSignal();
  RemovedOnSignal(const RemovedOnSignal&) = delete;
  RemovedOnSignal& operator=(const RemovedOnSignal&) = delete;

 private:
  int slot_;  ///< -1: all are taken
};

}  // namespace headroom::detail
