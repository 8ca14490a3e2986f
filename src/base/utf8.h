// Untrusted text: its validation, and how it is shown.
#pragma once

#include <string>
#include <string_view>

namespace headroom::detail {

/// Returns whether `text` is well-formed UTF-8 (Unicode 15, table 3-7) without control characters.
[[nodiscard]] bool is_printable_utf8(std::string_view text) noexcept;

/// `text` with every byte that is not part of printable UTF-8 as `\x1b`: control characters (U+0080
/// to U+009F, too), which may move the cursor or set a terminal's title, and malformed bytes.
/// Characters that reverse the direction of text (U+202A to U+202E, U+2066 to U+2069) likewise.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace headroom::detail
