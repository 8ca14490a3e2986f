// Buffers that hold gradients of weights before they are added to the stored gradients. Internal to
// src/plan.
#pragma once

#include <vector>

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// Trained weight of one GEMM on one rank; of an expert's GEMM, one expert's.
struct GemmShape {
  Integer elements = 0;
  Integer in_features = 0;
  bool operator==(const GemmShape&) const = default;
};

/// Sorts `shapes` and removes repetitions.
void keep_distinct(std::vector<GemmShape>& shapes);

/// Distinct shapes by kind of layers, in ascending order. Weights of one node are stored as one:
/// query, key and value, gate and up.
[[nodiscard]] std::vector<std::vector<GemmShape>> gemm_shapes(const Graph& graph, std::size_t kinds,
                                                              const Bindings& rank_sizes);

/// Bytes of a rank's gradient buffers. With Megatron's recipe GEMMs add to float32 gradients in
/// place, and autograd is handed a dummy gradient in the weights' type: Transformer Engine keeps
/// one per distinct shape (get_dummy_wgrad in its module/base.py). Otherwise the largest weight's
/// gradient exists beside the stored ones until it is added.
[[nodiscard]] Integer weight_gradient_bytes(const std::vector<GemmShape>& distinct,
                                            const StatePolicy& policy);

}  // namespace headroom::detail
