// Layer norm of the rows of a clip over their own and all earlier rows (transformers,
// models/gemma3n, Gemma3nAudioCumulativeGroupNorm).
#pragma once

#include <cstdint>

#include "normalize.h"

namespace headroom::measured {

/// out = (x - mean) / √(variance + eps) · weight, with a weight of each of `channels`, the last
/// dimension of a row. The mean is that of a row and all rows before it; the variance, the mean of
/// the squares by which each of these rows differs from its own such mean. out may be x.
void cumulative_norm(const NormArguments& norm, std::int64_t channels, const float* x, float* out);

}  // namespace headroom::measured
