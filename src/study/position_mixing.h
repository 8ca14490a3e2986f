// How operators mix positions, and the cost of it. Internal to src/study.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/complexity.h"

namespace headroom {

/// How an operator mixes positions.
enum class MixingKind {
  none,           ///< position-wise
  auxiliary,      ///< part of the mixing without deciding its reach: softmax, context, φ
  all,            ///< every position reads all (causal: all earlier) positions in one step
  neighbourhood,  ///< every position reads some nearby positions
  state,          ///< every position reads a state that sums over all earlier positions
  recurrence,     ///< every position continues from the previous one
};

/// Mixing of one operator.
struct PositionMixing {
  MixingKind kind = MixingKind::none;
  std::int64_t reach = 0;       ///< neighbourhood: distance of the farthest position read
  std::int64_t neighbours = 0;  ///< neighbourhood: positions read, itself included
  std::int64_t dilation = 1;    ///< neighbourhood: distance between them
  Expr sequential{Integer{1}};  ///< dependent steps
};

[[nodiscard]] PositionMixing position_mixing(const Op& op, const Graph& graph);

/// Returns whether an operator's cost counts as position mixing, not as a projection.
[[nodiscard]] bool is_of_mixing(const PositionMixing& mixing) noexcept;

/// Path length through the graph's layers, repeated as often as needed.
[[nodiscard]] PathLength path_length(const Graph& graph);

/// Dependent steps of one pass over the layers.
[[nodiscard]] Expr sequential_operations(const Graph& graph);

/// Operators of `graph` that mix positions, in execution order. The pointers are into `analysis`.
[[nodiscard]] std::vector<const NodeAnalysis*> mixing_nodes(const Graph& graph,
                                                            const Analysis& analysis);

/// Those of them that are attention: neither recurrences nor convolutions.
[[nodiscard]] std::vector<const NodeAnalysis*> attention_nodes(const Graph& graph,
                                                               const Analysis& analysis);

/// Forward cost of all operators that mix positions.
[[nodiscard]] Cost mixing_cost(const Graph& graph, const Analysis& analysis);

}  // namespace headroom
