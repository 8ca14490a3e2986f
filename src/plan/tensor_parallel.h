// Tensor and sequence parallelism of a graph. Internal to src/plan.
#pragma once

#include <cstdint>

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// The graph of one of `ranks` tensor-parallel ranks. Sizes stay symbolic: in the result h, g, f
/// and V are the rank's own.
[[nodiscard]] Graph tensor_parallel(const Graph& graph, std::int64_t ranks,
                                    SequenceParallel sequence);

}  // namespace headroom::detail
