// Bytes of quantised weights with their scales. Internal to src/plan.
#pragma once

#include "headroom/expr.h"

namespace headroom::detail {

/// NF4 with double quantisation (arXiv 2305.14314, section 3): 4 bits per weight, an 8-bit scale
/// per 64 weights and a float32 scale per 256 scales; 4.127 bits per weight in total.
[[nodiscard]] constexpr Integer nf4_bytes(Integer elements) {
  const Integer scales = ceil_div(elements, 64);
  return ceil_div(elements, 2) + scales + 4 * ceil_div(scales, 256);
}

}  // namespace headroom::detail
