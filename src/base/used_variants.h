// Layer variants of a stack that a layer has: a family may state a variant that none of them uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Inner width of the FFN that every token reads, of the first layer with one or of a block that
/// layers share; 0 if all layers route their tokens, or have no FFN.
[[nodiscard]] inline std::int64_t dense_intermediate_size(const StackSpec& stack) {
  for (const std::size_t variant : used_variants(stack)) {
    const FfnSpec& ffn = stack.ffn_of(variant);
    const bool routed = ffn.experts && !ffn.experts->beside_dense;
    if (ffn.kind != FfnKind::none && ffn.intermediate_size > 0 && !routed) {
      return ffn.intermediate_size;
    }
  }
  return stack.shared_block ? stack.shared_block->ffn.intermediate_size : 0;
}

}  // namespace headroom::detail
