// The ledger of training: tensors that each operator saves for its backward pass. Internal to
// src/analytic.
#pragma once

#include <vector>

#include "headroom/analysis.h"

namespace headroom::detail {

/// All tensors that a training graph saves, each once: a tensor that two operators need is listed
/// with the first. Sources: arXiv 2205.05198 (section 4) for fused kernels;
/// torch.autograd.graph.saved_tensors_hooks for the reference code.
[[nodiscard]] std::vector<SavedTensor> saved_tensors(const Graph& graph, Kernels kernels);

/// Bytes of all layer inputs, which full recompute saves.
[[nodiscard]] Expr layer_input_bytes(const Graph& graph);

}  // namespace headroom::detail
