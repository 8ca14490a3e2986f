// Progress of long work on standard error, if that is a terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace headroom::cli {

/// Draws a bar, filled to `fraction` in [0, 1], and a text; nothing unless standard error is a
/// terminal. Returns false once a signal asked for the end.
bool show_progress(double fraction, std::string_view text);
/// Erases the bar.
void clear_progress();

/// " · 12 s left" after `elapsed_s` for `fraction` of the work; empty in the first second, and
/// while too little is done to tell.
[[nodiscard]] std::string time_left(double fraction, double elapsed_s);

/// The text of a search for plans.
[[nodiscard]] std::string searching_text(double fraction);

/// A bar of work whose steps take alike, with the time that is left. Erased at the end.
class ProgressBar {
 public:
  ProgressBar() : start_(std::chrono::steady_clock::now()), drawn_(start_) {}
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// As show_progress, at most ten times a second, and not in the first tenth.
  bool show(double fraction, std::string_view text);

 private:
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace headroom::cli
