// shard: graph -> graph. The graph of one rank under a parallel plan: sizes divided, communication
// between ranks inserted as collective operators. Every analysis then applies unchanged, per rank.
//
//   tensor    divides heads, intermediate sizes and the vocabulary; column-parallel GEMMs read the
//             whole input, row-parallel GEMMs give partial sums that are reduced
//   sequence  shards the tokens between those GEMMs
//   context   shards every sequence; attention gathers keys and values
//   expert    spreads the routed experts; tokens travel to them and back
//   pipeline  gives each rank some of the layers and sends hidden states on; an encoder's stages
//             come before its decoder's, and its output goes through all of those
#pragma once

#include <vector>

#include "headroom/figures.h"
#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom {

/// Position of a rank in the pipeline; `whole` without one.
enum class Stage { whole, first, middle, last };

/// The graph of one rank of `stage`; `middle` is stage 1. Its `sizes` are the rank's own: heads,
/// intermediate size and vocabulary of a rank, layers of a stage. `plan` must be legal. Sources:
/// arXiv 1909.08053 (tensor), 2205.05198 (sequence), 2104.04473 (pipeline), 2310.01889 (context).
[[nodiscard]] Graph shard(const Graph& graph, const ParallelPlan& plan, Stage stage = Stage::whole);

/// shard() for the stage with this index, 0 the first.
[[nodiscard]] Graph shard_stage(const Graph& graph, const ParallelPlan& plan, std::int64_t stage);

/// The sizes of one rank. Key-value heads are repeated where there are more ranks than heads; the
/// vocabulary is padded to a multiple of the ranks.
[[nodiscard]] Bindings rank_sizes(const Bindings& sizes, const ParallelPlan& plan);

/// The workload's symbols for one rank: its shard of every sequence, all visible keys.
/// `workload.batch_size` counts the sequences of one pass of the rank. With sequence parallelism
/// an encoder-decoder's two lengths must be equal.
[[nodiscard]] Bindings rank_bindings(const Workload& workload, const LayerTraits& traits,
                                     const ParallelPlan& plan);

/// A rank's formula in the whole model's sizes: a rank's h becomes h·τ⁻¹, and so on. Related sizes
/// are collapsed.
[[nodiscard]] Expr in_whole_sizes(const Expr& formula, const Graph& whole);

/// True if tensor parallelism divides this weight; otherwise every rank of the group stores all of
/// it.
[[nodiscard]] bool is_divided(const Weight& weight);

/// graph -> graph: the head computes only the last token of each sequence, as serving engines do.
[[nodiscard]] Graph with_last_token_head(const Graph& graph);

/// One direction of a collective operator in a sharded graph, for all its layers together.
struct CollectiveCall {
  std::string path;
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  Expr bytes;  ///< as Collective::bytes, of one layer
  Expr repeat;
  bool backward = false;
};

/// All collectives of a sharded graph, forward and backward.
[[nodiscard]] std::vector<CollectiveCall> collectives_of(const Graph& sharded);

/// Bytes that one rank sends for one collective among `ranks`, by ring algorithms: all-reduce
/// 2·(n − 1)/n of the buffer, all-gather and reduce-scatter (n − 1) shards, all-to-all (n − 1)/n of
/// the buffer.
[[nodiscard]] double wire_bytes(CollectiveKind kind, double bytes, std::int64_t ranks) noexcept;

[[nodiscard]] std::string_view name_of(RankGroup group) noexcept;
[[nodiscard]] std::string_view name_of(CollectiveKind kind) noexcept;
[[nodiscard]] std::string_view name_of(Stage stage) noexcept;

}  // namespace headroom
