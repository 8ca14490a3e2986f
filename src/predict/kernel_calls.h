// Which kernels an operator calls, and with which sizes. Internal to src/predict.
#pragma once

#include <optional>
#include <vector>

#include "headroom/graph.h"
#include "headroom/machine_profile.h"

namespace headroom::detail {

struct KernelCall {
  KernelKind kind = KernelKind::copy;
  KernelSizes sizes;
  /// Of a linear layer, which may run warm or cold.
  std::optional<KernelKind> warm;
  double times = 1;  ///< calls of these sizes, one after the other
};

/// How linear layers of few rows are stored and run.
struct LinearPolicy {
  bool streams = false;  ///< few rows: weights are read once, in their own type
  bool narrow = false;   ///< that type is bfloat16
};

/// A node where it stands.
struct NodePlace {
  const Graph& graph;
  const Block& block;
  const Node& node;
};

/// The kernel calls of one node in one layer. Throws Error{internal} for what only training has.
[[nodiscard]] std::vector<KernelCall> kernel_calls(const NodePlace& place, const Bindings& sizes,
                                                   const LinearPolicy& policy);

}  // namespace headroom::detail
