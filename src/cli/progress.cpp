#include "progress.h"

#include <fmt/format.h>

#include <cmath>

#include "interruption.h"
#include "standard_streams.h"
#include "utf8.h"

namespace headroom::cli {

bool show_progress(double fraction, std::string_view text) {
  if (is_error_terminal()) {
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(kWidth * fraction);
    write_standard_error(fmt::format("\r[{:#<{}}{:.<{}}] {}\033[K", "", filled, "", kWidth - filled,
                                     detail::printable(text)));
  }
  return detail::interruption() == 0;
}

void clear_progress() {
  if (is_error_terminal()) write_standard_error("\r\033[K");
}

std::string time_left(double fraction, double elapsed_s) {
  constexpr double kLeastSeconds = 1;
  constexpr double kLeastFraction = 0.01;
  constexpr double kMinute = 60;
  if (elapsed_s < kLeastSeconds || fraction < kLeastFraction) return {};
  const double left_s = elapsed_s * (1 - fraction) / fraction;
  if (left_s < 2 * kMinute) return fmt::format(" · {:.0f} s left", std::ceil(left_s));
  return fmt::format(" · {:.0f} min left", std::ceil(left_s / kMinute));
}

std::string searching_text(double fraction) {
  return fmt::format("searching plans {:.0f} %", 100 * fraction);
}

ProgressBar::~ProgressBar() {
  try {
    clear_progress();
  } catch (...) {  // NOLINT(bugprone-empty-catch): a bar that stays harms nobody
  }
}

bool ProgressBar::show(double fraction, std::string_view text) {
  constexpr std::chrono::milliseconds kBetween{100};
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < kBetween) return detail::interruption() == 0;
  drawn_ = now;
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  return show_progress(fraction, std::string(text) + time_left(fraction, elapsed_s));
}

}  // namespace headroom::cli
