// Layers of the copies of each weight.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/graph.h"

namespace headroom::detail {

/// For each weight of `graph`, the layer of its stack that each copy belongs to, in order; layers
/// that share a copy count once. A weight without an operator has the layers 0, 1, ….
[[nodiscard]] std::vector<std::vector<std::int64_t>> layers_of_copies(const Graph& graph);

/// Likewise, for `graph` of `spec`, where parts that the pass does not run, such as the tower in
/// one without images, have no operators.
[[nodiscard]] std::vector<std::vector<std::int64_t>> layers_of_copies(const ModelSpec& spec,
                                                                      const Graph& graph);

}  // namespace headroom::detail
