// Logical name, shape and type of a weight that is stored as several tensors. Internal to
// src/weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/expr.h"

namespace headroom::detail {

/// No weight has a larger dimension; its products do not overflow.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40U;
/// Bits of the integers that values are packed into.
inline constexpr std::int64_t kWordBits = 32;

struct Unpacked {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  Integer values = 0;
};

/// Empty for tensors that do not fit together.
using UnpackResult = std::optional<Unpacked>;

/// The number of values in `shape`. Throws Error{overflow}.
[[nodiscard]] Integer product(std::span<const std::int64_t> shape);

[[nodiscard]] UnpackResult unpacked(std::string name, std::string type,
                                    std::vector<std::int64_t> shape);

/// Bits per value if `words` integers of 32 bits hold `values`; empty unless an integer up to 8.
[[nodiscard]] std::optional<std::int64_t> bits_of(std::int64_t words, std::int64_t values);

}  // namespace headroom::detail
