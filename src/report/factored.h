// Formulas with the layer count factored out: "l·(24·b·s·d² + 4·b·s²·d) + 2·b·d²". Internal to
// src/report.
#pragma once

#include <string>

#include "headroom/expr.h"

namespace headroom::detail {

[[nodiscard]] std::string format_factored(const Expr& expr);
[[nodiscard]] std::string format_factored_with_values(const Expr& expr, const Bindings& values);

}  // namespace headroom::detail
