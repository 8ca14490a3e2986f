// Random weights in groups of codes.
#pragma once

#include <cstdint>

#include "grouped_weights.h"
#include "quantization/group_format.h"
#include "random_numbers.h"

namespace headroom::measured {

/// A matrix [rows, columns] in the form of `format`, without codes, scales and zero points. A group
/// takes the whole row where `format` has larger ones.
[[nodiscard]] checkpoint::GroupedWeights empty_groups(const headroom::detail::GroupFormat& format,
                                                      std::int64_t rows, std::int64_t columns);

/// Such a matrix of random finite codes, with scales and zero points that differ, a mean near 0 and
/// the standard deviation `deviation` (of scales that are powers of two, within a factor of √2).
[[nodiscard]] checkpoint::GroupedWeights random_groups(const headroom::detail::GroupFormat& format,
                                                       std::int64_t rows, std::int64_t columns,
                                                       float deviation, SplitMix64& numbers);

/// Bits of the nearest float16 or bfloat16 of `value`, as `kind` says.
[[nodiscard]] std::uint16_t bits_of_16(checkpoint::CodeKind kind, float value);

/// Bytes of its codes, scales and zero points.
[[nodiscard]] std::int64_t bytes_of(const checkpoint::GroupedWeights& weights);

}  // namespace headroom::measured
