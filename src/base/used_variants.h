// Layer variants of a stack that a layer has: a family may state a variant that none of them uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "headroom/layer_spec.h"

namespace headroom::detail {

/// Indices for `StackSpec::attention_of` and `ffn_of`, in ascending order.
[[nodiscard]] inline std::vector<std::size_t> used_variants(const StackSpec& stack) {
  if (stack.variant_of_layer.empty()) return {0};
  std::vector<std::size_t> used = stack.variant_of_layer;
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

}  // namespace headroom::detail
