// Validation of untrusted text.
#pragma once

#include <string_view>

namespace headroom::detail {

/// Returns whether `text` is well-formed UTF-8 (Unicode 15, table 3-7) without control characters.
[[nodiscard]] bool is_printable_utf8(std::string_view text) noexcept;

}  // namespace headroom::detail
