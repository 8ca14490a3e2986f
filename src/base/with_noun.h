// Counts in words: "1 thread", "2 threads".
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "headroom/expr.h"

namespace headroom::detail {

/// `noun`, with an s unless there is one of it.
[[nodiscard]] inline std::string plural(Integer count, std::string_view noun) {
  return fmt::format("{}{}", noun, count == 1 ? "" : "s");
}

/// "1 thread", "2000 threads".
[[nodiscard]] inline std::string with_noun(Integer count, std::string_view noun) {
  return fmt::format("{} {}", to_string(count), plural(count, noun));
}

/// "1 row", "2,000 rows".
[[nodiscard]] inline std::string with_noun_grouped(Integer count, std::string_view noun) {
  return fmt::format("{} {}", with_separators(count), plural(count, noun));
}

}  // namespace headroom::detail
