// Layers of Kimi delta attention (arXiv 2510.26692), beside layers of latent attention.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// Sizes of the layers; their keys and values have as many heads, of one size.
struct KimiDeltaSizes {
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t conv_kernel_dim = 0;
};

/// Delta attention with a decay for each key dimension and a sigmoid gate, whose projections have
/// full rank.
[[nodiscard]] GatedDeltaSpec kimi_delta(const KimiDeltaSizes& sizes);

/// Gives delta attention to the layers where `latent` is false.
void spread_kimi_delta(StackSpec& stack, const std::vector<bool>& latent,
                       const GatedDeltaSpec& delta);

}  // namespace headroom::detail
