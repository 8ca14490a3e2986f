// Slopes of attention with linear biases (arXiv 2108.12409).
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// One slope a head, times `scale`.
[[nodiscard]] std::vector<float> alibi_slopes(AlibiKind kind, std::int64_t heads, double scale);

}  // namespace headroom::measured
