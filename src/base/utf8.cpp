#include "utf8.h"

#include <fmt/format.h>

#include <cstddef>

namespace headroom::detail {
namespace {

/// A row of table 3-7: a range of leading bytes, and the range of the second byte. Later bytes are
/// 0x80 to 0xBF.
struct Lead {
  unsigned char least;
  unsigned char most;
  unsigned char second_least;
  unsigned char second_most;
  std::size_t length;
};

// Excludes overlong forms, surrogates, code points above U+10FFFF, and control characters.
constexpr Lead kLeads[] = {
    {0x20, 0x7E, 0, 0, 1},       {0xC2, 0xC2, 0xA0, 0xBF, 2}, {0xC3, 0xDF, 0x80, 0xBF, 2},
    {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4},
    {0xF4, 0xF4, 0x80, 0x8F, 4},
};

bool lies_between(char c, unsigned char least, unsigned char most) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= least && byte <= most;
}

/// Bytes of the first character of `text`; 0 if it is malformed.
std::size_t character_length(std::string_view text) {
  for (const Lead& lead : kLeads) {
    if (!lies_between(text.front(), lead.least, lead.most)) continue;
    if (text.size() < lead.length) return 0;
    for (std::size_t i = 1; i < lead.length; ++i) {
      const bool second = i == 1;
      if (!lies_between(text[i], second ? lead.second_least : 0x80,
                        second ? lead.second_most : 0xBF)) {
        return 0;
      }
    }
    return lead.length;
  }
  return 0;
}

/// Returns whether a character of three bytes reverses the direction of the text after it.
bool reverses_text(std::string_view character) {
  const auto lies_in = [&](std::string_view first, std::string_view last) {
    return first <= character && character <= last;
  };
  return lies_in("\u202A", "\u202E") || lies_in("\u2066", "\u2069");
}

}  // namespace

bool is_printable_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const bool shown = length > 0 && !reverses_text(text.substr(0, length));
    if (shown) {
      result += text.substr(0, length);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    }
    text.remove_prefix(shown ? length : 1);
  }
  return result;
}

}  // namespace headroom::detail
