// How far an operator carries information from one position to others, and how long the chain of
// steps is that it needs for that: the columns of "Attention Is All You Need", Table 1 (arXiv
// 1706.03762), read off the operators of a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"
#include "headroom/growth.h"

namespace headroom {

enum class MixingKind {
  none,           ///< each position by itself
  belongs,        ///< part of what mixes, but decides nothing: softmax, context, φ
  all,            ///< every position reads all, or all before it, in one step
  neighbourhood,  ///< every position reads some near it
  state,          ///< every position reads what a state holds of all before it, which is a sum
  recurrence,     ///< every position goes on from the one before
};

struct PositionMixing {
  MixingKind kind = MixingKind::none;
  std::int64_t reach = 0;       ///< neighbourhood: how far away the farthest is that is read
  std::int64_t neighbours = 0;  ///< neighbourhood: how many are read, itself included
  std::int64_t dilation = 1;    ///< neighbourhood: how far apart these are
  Expr sequential{Integer{1}};  ///< steps that have to wait for one another
};

[[nodiscard]] PositionMixing position_mixing(const Op& op, const Graph& graph);

/// Whether an operator's cost is that of mixing positions, and not of projecting each.
[[nodiscard]] bool is_of_mixing(const PositionMixing& mixing) noexcept;

/// How the longest path between two positions of a sequence grows with its length, each of the
/// ops that it goes through once counting one step.
enum class PathGrowth {
  never,        ///< no path at all: position-wise
  constant,     ///< one step
  logarithmic,  ///< dilations grow from layer to layer by a factor
  by_reach,     ///< as many layers as neighbourhoods have to be laid end to end
  linear,       ///< through every position between
};

struct PathLength {
  PathGrowth growth = PathGrowth::never;
  std::int64_t neighbours = 0;        ///< by_reach, logarithmic: of one layer, the table's k or r
  std::int64_t dilation_factor = 0;   ///< logarithmic
  std::string order;                  ///< "O(1)", "O(n)", "O(n/k)", "O(log_k(n))", "–"
  std::vector<std::int64_t> reaches;  ///< of the layers as given, one after the other
  /// Positions that the layers as given bring together, both ends included; none: all there are.
  std::optional<std::int64_t> receptive_field;
};

/// Of the graph's layers, as given and then going on alike.
[[nodiscard]] PathLength path_length(const Graph& graph);

/// Steps between the first and the last of `length` positions: operators for what mixes at once,
/// layers for neighbourhoods, positions for a recurrence. Empty where there is no path.
[[nodiscard]] std::optional<std::int64_t> steps_between_ends(const PathLength& path,
                                                             std::int64_t length);

/// Steps of one pass over the layers that have to wait for one another.
[[nodiscard]] Expr sequential_operations(const Graph& graph);

}  // namespace headroom
