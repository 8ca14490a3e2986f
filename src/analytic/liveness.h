// Which activations are alive while each node runs. Internal to src/analytic.
#pragma once

#include <vector>

#include "headroom/analysis.h"

namespace headroom::detail {

/// Bytes of live activations at each node, layers folded: every layer of a block has the same live
/// set, so one stands for all. Inputs belong to the caller, weights and the KV-cache are counted
/// apart. An operator that can work in place takes the memory of an input that dies there.
[[nodiscard]] std::vector<LiveBytes> live_bytes(const Graph& graph);

}  // namespace headroom::detail
