// Random blocks of ggml's types.
#pragma once

#include <cstdint>

#include "random_numbers.h"
#include "stored_blocks.h"

namespace headroom::measured {

/// `values` values in blocks of `type` with random codes and sub-scales, a mean near 0 and the
/// standard deviation `deviation` (of a type whose scales are powers of two, within a factor of
/// √2). Throws Error{internal} for a type without kernels.
[[nodiscard]] StoredBlocks random_block_values(checkpoint::GgmlType type, std::int64_t values,
                                               float deviation, SplitMix64& numbers);

}  // namespace headroom::measured
