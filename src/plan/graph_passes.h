// Graph -> graph: one stage of a pipeline, context and expert parallelism. Internal to src/plan.
#pragma once

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// What the stage at `place` runs, and the weights that it uses. Hidden states are sent on behind
/// the layers, once for each of the rank's model chunks; an encoder's output goes with them through
/// all stages of the decoder. A pipeline cuts between any two layers: the layers of a run that is
/// cut stand in a block of their own.
[[nodiscard]] Graph stage_of(const Graph& graph, const ParallelPlan& plan, std::int64_t place);

/// Each rank holds a share of every sequence; self-attention gathers keys and values of all. In the
/// result s is the rank's share and t the whole sequence.
[[nodiscard]] Graph context_parallel(const Graph& graph);

/// Each rank holds `1/degree` of the routed experts; tokens go to the ranks of their experts and
/// come back (arXiv 2006.16668, section 3.1).
[[nodiscard]] Graph expert_parallel(const Graph& graph, std::int64_t degree);

}  // namespace headroom::detail
