// Stages of a pipeline, context and expert parallelism of a graph. Internal to src/plan.
#pragma once

#include <vector>

#include "headroom/graph.h"
#include "headroom/shard.h"

namespace headroom::detail {

/// The layers of one block: `runs` times `layers_per_run` of them, from `first_layer` on.
struct LayerBlock {
  std::int64_t first_layer = 0;
  std::int64_t runs = 0;
  std::int64_t layers_per_run = 1;
};

/// The blocks of layers of a graph with one stack, in order.
[[nodiscard]] std::vector<LayerBlock> layer_blocks(const Graph& graph);

/// How many runs of each block a pipeline rank has: its layers are consecutive, or, interleaved,
/// `interleave` pieces of them in turn. Empty where a piece would begin or end within a run.
[[nodiscard]] std::vector<std::int64_t> runs_of_stage(const std::vector<LayerBlock>& blocks,
                                                      const ParallelPlan& plan, std::int64_t place);

/// The stage's place in the pipeline: 0 the first, 1 stands for those in the middle.
[[nodiscard]] std::int64_t place_of(Stage stage, const ParallelPlan& plan) noexcept;

/// The blocks that a rank of `stage` runs and the weights that they use; hidden states are sent on
/// behind the layers, once for each of the rank's model chunks.
[[nodiscard]] Graph stage_of(const Graph& graph, Stage stage, const ParallelPlan& plan);

/// Each rank holds a share of every sequence; self-attention gathers keys and values of all. In the
/// result s is the rank's share and t the whole sequence.
[[nodiscard]] Graph context_parallel(const Graph& graph);

/// Each rank holds `1/degree` of the routed experts; tokens go to the ranks of their experts and
/// come back (arXiv 2006.16668, section 3.1).
[[nodiscard]] Graph expert_parallel(const Graph& graph, std::int64_t degree);

}  // namespace headroom::detail
