// The ledger of training: which tensors each operator keeps for its backward pass. Internal.
#pragma once

#include <vector>

#include "headroom/analysis.h"

namespace headroom::detail {

/// All tensors that a training graph keeps, each once: a tensor that two operators need is listed
/// with the first. Sources: arXiv 2205.05198 (section 4) for fused kernels; for the reference code,
/// what torch.autograd.graph.saved_tensors_hooks reports.
[[nodiscard]] std::vector<SavedTensor> saved_tensors(const Graph& graph, Kernels kernels);

/// Bytes of the inputs of all layers: what stays under full recompute.
[[nodiscard]] Expr layer_input_bytes(const Graph& graph);

}  // namespace headroom::detail
