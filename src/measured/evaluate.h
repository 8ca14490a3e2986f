// Evaluation of symbolic sizes. Internal to src/measured.
#pragma once

#include <cstdint>
#include <limits>

#include "headroom/expr.h"

namespace headroom::measured {

/// `value` as a size of memory. Throws Error{overflow} above 2^63 - 1.
[[nodiscard]] inline std::int64_t narrow(Integer value) {
  if (value > std::numeric_limits<std::int64_t>::max()) detail::throw_overflow(63);
  return static_cast<std::int64_t>(value);
}

/// Evaluates `expr`, a size of a tensor that is allocated. Throws Error{overflow}.
[[nodiscard]] inline std::int64_t integer_of(const Expr& expr, const Bindings& sizes) {
  return narrow(expr.evaluate(sizes));
}

}  // namespace headroom::measured
