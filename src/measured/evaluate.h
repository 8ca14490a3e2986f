// Evaluation of symbolic sizes. Internal to src/measured.
#pragma once

#include <cstdint>
#include <limits>

#include "headroom/expr.h"
#include "headroom/integer.h"

namespace headroom::measured {

/// Evaluates `expr`, a size of a tensor that is allocated. Throws Error{overflow}.
[[nodiscard]] inline std::int64_t integer_of(const Expr& expr, const Bindings& sizes) {
  const Integer value = expr.evaluate(sizes);
  if (value > std::numeric_limits<std::int64_t>::max()) detail::throw_overflow(63);
  return static_cast<std::int64_t>(value);
}

}  // namespace headroom::measured
