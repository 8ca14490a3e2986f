// Formulas in the letters of a paper instead of those of symbol.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headroom/expr.h"

namespace headroom {

/// A paper's letter for one quantity.
struct Letter {
  Symbol symbol;
  std::string_view unicode;
};

/// Prints `expr` with `letters`, in that order inside a term; other symbols follow in their usual
/// spelling.
[[nodiscard]] std::string format_with_letters(const Expr& expr, std::span<const Letter> letters);

}  // namespace headroom
