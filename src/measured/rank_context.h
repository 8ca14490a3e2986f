// Place of this process in a sharded run: its graph, its position in every group, and the groups.
// Internal to src/measured and the program.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "communicator.h"
#include "headroom/error.h"
#include "headroom/graph.h"
#include "headroom/measurement.h"

namespace headroom::measured {

/// Sequence parallelism: tokens are sharded between tensor-parallel GEMMs (parallel_plan.h).
enum class SequenceShards { off, on };

/// Position in a group of ranks.
struct GroupPosition {
  std::int64_t ranks = 1;
  std::int64_t rank = 0;

  [[nodiscard]] bool is_first() const noexcept { return rank == 0; }
  [[nodiscard]] bool is_last() const noexcept { return rank + 1 == ranks; }
};

/// One rank of a sharded run. The measured module does not link the planner, so that `shard` is
/// given: from the graph of a whole model to that of this rank.
struct RankContext {
  std::function<Graph(const Graph& whole)> shard;
  GroupPosition tensor;
  GroupPosition pipeline;
  SequenceShards sequence = SequenceShards::off;
  GroupPosition data{};                    ///< among the replicas, each with its own sequences
  GroupPosition expert{};                  ///< among ranks that each hold some of the experts
  Communicator* tensor_group = nullptr;    ///< null: one rank
  Communicator* pipeline_group = nullptr;  ///< likewise; its ranks are the stages
  Communicator* expert_group = nullptr;
  Coordinator* world = nullptr;    ///< all ranks
  Coordinator* replica = nullptr;  ///< the ranks that run the same sequences
  /// Calls and bytes of this process since its start, counted where it calls the MPI library.
  std::function<std::vector<WireTraffic>()> traffic;

  /// Rank in `replica` that chooses the tokens of a generation: the first of the last stage. Ranks
  /// are numbered tensor first, then pipeline (ParallelPlan).
  [[nodiscard]] std::int64_t choosing_rank() const noexcept {
    return (pipeline.ranks - 1) * tensor.ranks;
  }
};

/// The graph that this process runs; `whole` itself without a rank.
[[nodiscard]] Graph graph_of_rank(Graph whole, const RankContext* rank);

/// Returns whether a pass of this phase shards tokens: a decode step has one per sequence.
[[nodiscard]] bool shards_tokens(const RankContext* rank, Phase phase) noexcept;

/// Binds the length of this rank's shard of `seq_len` tokens.
void set_token_shards(Bindings& sizes, std::int64_t seq_len, Phase phase, const RankContext* rank);

/// An error that every rank throws, since one of them failed.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Runs `step` on every rank of `world`, which each must call it. If any fails, all throw the worst
/// AgreedError, which names the rank.
void run_together(Coordinator& world, const std::function<void()>& step);

/// Throws Error{invalid_input} if `sharded`, the rank's part of `whole`, cannot run: a norm over
/// divided features, or an operator over sharded tokens that reads its neighbours.
void require_rank_runs(const Graph& sharded, const RankContext& rank);

}  // namespace headroom::measured
