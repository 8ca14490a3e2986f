#include "progress.h"

#include <fmt/format.h>

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

}  // namespace headroom::cli
