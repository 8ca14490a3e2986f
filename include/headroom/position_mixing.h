// Reach of an operator across positions, and the number of dependent steps it needs: the columns of
// "Attention Is All You Need", Table 1 (arXiv 1706.03762), derived from the operators of a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"
#include "headroom/growth.h"

namespace headroom {

/// How an operator mixes positions.
enum class MixingKind {
  none,           ///< position-wise
  belongs,        ///< part of the mixing without deciding its reach: softmax, context, φ
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

/// Growth of the longest path between two positions with the sequence length, counting one step per
/// operator on the path.
enum class PathGrowth {
  never,        ///< no path: position-wise
  constant,     ///< one step
  logarithmic,  ///< dilations grow geometrically from layer to layer
  by_reach,     ///< length divided by the reach of a layer
  linear,       ///< through every position in between
};

/// Longest path through a graph's layers.
struct PathLength {
  PathGrowth growth = PathGrowth::never;
  std::int64_t neighbours = 0;        ///< by_reach, logarithmic: k or r of one layer
  std::int64_t dilation_factor = 0;   ///< logarithmic
  std::string order;                  ///< "O(1)", "O(n)", "O(n/k)", "O(log_k(n))", "–"
  std::vector<std::int64_t> reaches;  ///< of the given layers, in order
  /// Receptive field of the given layers, both ends included; empty: all positions.
  std::optional<std::int64_t> receptive_field;
};

/// Path length through the graph's layers, repeated as often as needed.
[[nodiscard]] PathLength path_length(const Graph& graph);

/// Steps between the first and the last of `length` positions: one for full mixing, layers for
/// neighbourhoods, positions for a recurrence. Empty without a path.
[[nodiscard]] std::optional<std::int64_t> steps_between_ends(const PathLength& path,
                                                             std::int64_t length);

/// Dependent steps of one pass over the layers.
[[nodiscard]] Expr sequential_operations(const Graph& graph);

}  // namespace headroom
