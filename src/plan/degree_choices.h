// Degrees that a search tries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace headroom::detail {

/// In ascending order.
[[nodiscard]] std::vector<std::int64_t> divisors(std::int64_t number);

/// Sizes of micro-batches: powers of two, the whole batch, and those that give each of as many
/// replicas as divide `devices` its sequences at once.
[[nodiscard]] std::vector<std::int64_t> micro_batch_sizes(std::int64_t batch, std::int64_t devices);

/// `fixed` if given, otherwise all `values`.
template <class Value>
[[nodiscard]] std::vector<Value> choices(const std::optional<Value>& fixed,
                                         std::vector<Value> values) {
  if (fixed) return {*fixed};
  return values;
}

}  // namespace headroom::detail
