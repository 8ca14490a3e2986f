// What a run holds beside weights, KV-cache and activations. Internal to src/predict.
#pragma once

#include "headroom/graph.h"
#include "headroom/workload.h"

namespace headroom::detail {

inline constexpr Integer kFloat32Bytes = 4;

/// Numbers of the inputs, and those that operators work in besides their operands: the patches that
/// a projection multiplies, side by side, and the padded input of a convolution. Token ids, of
/// which an activation holds far more, do not count.
[[nodiscard]] Integer working_floats(const Graph& graph, const ModelSpec& spec,
                                     const Workload& workload);

}  // namespace headroom::detail
