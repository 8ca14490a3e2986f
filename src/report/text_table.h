// Tables on a terminal: columns that fit its width, and bars beside shares. Internal to src/report.
#pragma once

#include <cstddef>
#include <string>

#include "document.h"

namespace headroom::detail {

/// The text with blanks to `width` columns.
[[nodiscard]] std::string padded_to(const std::string& text, std::size_t width,
                                    Alignment alignment);

/// Columns of a bar.
inline constexpr std::size_t kBarWidth = 10;

/// A bar of `percent` of kBarWidth columns, in eighths of a column; at most full. Without the
/// blanks after it.
[[nodiscard]] std::string share_bar(double percent);

/// The table without the optional columns that lines of `width` columns have no room for, which
/// table_text drops, too; 0: unlimited.
[[nodiscard]] Table fitted_to(Table table, std::size_t width);

/// A table laid out for a width: drops optional columns, from the right, until it fits; then wraps
/// the words of its widest column. Where columns are left, shares have bars, from the left.
[[nodiscard]] std::string table_text(const Table& table, const TextLayout& layout);

}  // namespace headroom::detail
