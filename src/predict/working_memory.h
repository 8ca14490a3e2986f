// Memory of a run besides weights, KV-cache and activations. Internal to src/predict.
#pragma once

#include "headroom/graph.h"
#include "headroom/workload.h"

namespace headroom::detail {

inline constexpr Integer kFloat32Bytes = 4;

/// Floats of the inputs and of scratch buffers: the gathered patches of a patch projection and the
/// padded input of a convolution. Token ids are negligible and not counted.
[[nodiscard]] Integer working_floats(const Graph& graph, const ModelSpec& spec,
                                     const Workload& workload);

}  // namespace headroom::detail
