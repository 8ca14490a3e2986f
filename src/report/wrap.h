// Breaks text and formulas into lines that fit a width. Internal to src/report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::detail {

/// Lines of at most `width` columns, 0 for unlimited: broken after " · " if each item fits, else at
/// blanks, with an operator before its operand. A longer word has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped_text(std::string_view text, std::size_t width);

/// A formula broken before " + " and " − ".
[[nodiscard]] std::vector<std::string> wrapped_formula(std::string_view formula, std::size_t width);

/// Columns of the longest part that wrapped_text() does not break.
[[nodiscard]] std::size_t widest_part(std::string_view text);

}  // namespace headroom::detail
