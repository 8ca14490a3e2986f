// Graph -> graph: one stage of a pipeline, context and expert parallelism. Internal to src/plan.
#pragma once

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// Makes the blocks of an image tower operators outside the layers: a plan runs the whole tower on
/// every rank of the first stage, and its backward pass recomputes none of it.
[[nodiscard]] Graph tower_outside_layers(Graph graph);

/// Returns whether `node` belongs to an image tower or its projector.
[[nodiscard]] bool in_tower(const Node& node);

/// Returns whether a tower has a backward pass. One of frozen weights has none, since no trained
/// weight comes before it: adapters are in the text model's layers only.
[[nodiscard]] bool trains_tower(const Graph& graph);

/// The operators and weights of one pipeline stage. It sends hidden states on after its layers,
/// once for each model chunk; an encoder's output travels with them through all stages of the
/// decoder. A pipeline cuts between any two layers: a run of layers that is cut becomes a block of
/// its own.
[[nodiscard]] Graph stage_of(const Graph& graph, const ParallelPlan& plan, std::int64_t stage);

/// Shards every sequence; self-attention gathers all keys and values. In the result s is the rank's
/// shard and t the whole sequence.
[[nodiscard]] Graph context_parallel(const Graph& graph);

/// Leaves each rank `1/degree` of the routed experts; tokens travel to the ranks of their experts
/// and back (arXiv 2006.16668, section 3.1).
[[nodiscard]] Graph expert_parallel(const Graph& graph, std::int64_t degree);

/// Fixes the size of routed experts, so that tensor parallelism leaves each of them whole: its
/// ranks run them on their own tokens.
[[nodiscard]] Graph with_whole_experts(const Graph& graph);

}  // namespace headroom::detail
