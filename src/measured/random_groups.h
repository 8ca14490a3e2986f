// Random weights in groups of codes, for calibration.
#pragma once

#include <cstdint>

#include "grouped_weights.h"
#include "quantization/group_format.h"
#include "random_numbers.h"

namespace headroom::measured {

/// A matrix [rows, columns] of random finite codes in `format`, with scales near 2^-6 and zero
/// points that differ. A group takes the whole row where `format` has larger ones.
[[nodiscard]] checkpoint::GroupedWeights random_groups(const headroom::detail::GroupFormat& format,
                                                       std::int64_t rows, std::int64_t columns,
                                                       SplitMix64& numbers);

/// Bytes of its codes, scales and zero points.
[[nodiscard]] std::int64_t bytes_of(const checkpoint::GroupedWeights& weights);

}  // namespace headroom::measured
