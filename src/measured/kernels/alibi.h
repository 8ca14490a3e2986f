// Slopes of attention with linear biases (ALiBi, arXiv 2108.12409).
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// One slope per head, rounded to bfloat16 if `alibi.order` is rounded_before_scale.
[[nodiscard]] std::vector<float> alibi_slopes(const AlibiSpec& alibi, std::int64_t heads);

}  // namespace headroom::measured
