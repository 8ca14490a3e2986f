// Live activations at each node. Internal to src/analytic.
#pragma once

#include <vector>

#include "headroom/analysis.h"

namespace headroom::detail {

/// Bytes of live activations at each node. Layers are folded: all layers of a block have equal live
/// sets. Excludes graph inputs, which belong to the caller, and weights and the KV-cache, which are
/// counted separately. An in-place operator reuses the memory of an input that dies there.
[[nodiscard]] std::vector<LiveBytes> live_bytes(const Graph& graph);

}  // namespace headroom::detail
