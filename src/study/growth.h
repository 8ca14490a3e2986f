// Orders of growth of costs. Internal to src/study.
#pragma once

#include "headroom/complexity.h"

namespace headroom {

/// Order of growth of `cost`, for one sequence without a past, as all sizes grow. Products that
/// equal the hidden size collapse (h·k → d), the feed-forward width counts as d, and a
/// head is at most as wide as the model. Layer counts and bytes per element are constants.
[[nodiscard]] Growth growth_of(const Expr& cost, const Graph& graph);

/// `cost` for one sequence without a past: 8·s·d² + 4·s²·d. Exact, except that the pairs of a
/// window are those of sequences longer than the window.
[[nodiscard]] Expr of_one_sequence(const Expr& cost, const Graph& graph);

}  // namespace headroom
