// Formulas in other letters than symbol.h's, for readers of a paper that has its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headroom/expr.h"

namespace headroom {

/// How a paper writes one quantity.
struct Letter {
  Symbol symbol;
  std::string_view unicode;
};

/// `expr` with these letters, in their order inside a term; other symbols follow as they are always
/// written.
[[nodiscard]] std::string format_with_letters(const Expr& expr, std::span<const Letter> letters);

}  // namespace headroom
