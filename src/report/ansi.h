// Colours of a terminal: escape sequences of ECMA-48, 8.3.117 (SGR). Internal to src/report.
#pragma once

#include <string>

#include "document.h"

namespace headroom::detail {

inline constexpr const char* kBold = "\033[1m";

/// Null without an outcome.
[[nodiscard]] constexpr const char* terminal_colour(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::good:
      return "\033[1;32m";
    case Outcome::bad:
      return "\033[1;31m";
    case Outcome::none:
      break;
  }
  return nullptr;
}

/// The text in a colour; unchanged if `colour` is null.
[[nodiscard]] inline std::string painted(const std::string& text, const char* colour) {
  return colour == nullptr ? text : colour + text + "\033[0m";
}

}  // namespace headroom::detail
