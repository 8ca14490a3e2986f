// Cost of position mixing. Internal to src/study.
#pragma once

#include <vector>

#include "headroom/analysis.h"

namespace headroom {

/// Operators of `graph` that mix positions, in execution order. The pointers are into `analysis`.
[[nodiscard]] std::vector<const NodeAnalysis*> mixing_nodes(const Graph& graph,
                                                            const Analysis& analysis);

/// Forward cost of those operators.
[[nodiscard]] Cost mixing_cost(const Graph& graph, const Analysis& analysis);

}  // namespace headroom
