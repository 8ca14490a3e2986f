// Kernel calls of an operator, with their sizes. Internal to src/predict.
#pragma once

#include <optional>
#include <vector>

#include "headroom/graph.h"
#include "headroom/machine_profile.h"
#include "row_policy.h"

namespace headroom::detail {

/// Calls of one kernel.
struct KernelCall {
  KernelKind kind = KernelKind::copy;
  KernelSizes sizes;
  /// Warm counterpart of a kernel whose operands may be cached.
  std::optional<KernelKind> warm;
  double times = 1;  ///< sequential calls of these sizes
  /// GEMM of weights as they are stored, whose times take the place of `kind`'s; null: plain ones.
  const StoredGemm* stored = nullptr;
};

/// Weight storage of linear layers.
struct LinearPolicy {
  RowPolicy rows;       ///< with the layout for few, weights are read once
  RowPolicy head_rows;  ///< of the head's layers
  bool narrow = false;  ///< weights are bfloat16, which have one kernel for any number of rows
  MeasuredEngine engine = MeasuredEngine::headroom;

  /// Returns whether a GEMM of `count` rows of `part` reads the layout for few.
  [[nodiscard]] bool streams(Part part, double count) const {
    const RowPolicy& own = part == Part::head ? head_rows : rows;
    return own.few && (!own.many || count <= static_cast<double>(kFewRows));
  }
};

/// A node with its block and graph.
struct NodePlace {
  const Graph& graph;
  const Block& block;
  const Node& node;
};

/// Kernel calls of one node in one layer. Throws Error{internal} for operators of training only.
[[nodiscard]] std::vector<KernelCall> kernel_calls(const NodePlace& place, const Bindings& sizes,
                                                   const LinearPolicy& policy);

}  // namespace headroom::detail
