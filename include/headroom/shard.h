// shard: graph -> graph. The graph of one rank under a parallel plan: sizes divided, exchanges
// between ranks inserted as collective operators. Every analysis then applies unchanged, per rank.
//
//   tensor    heads, inner widths and the vocabulary are divided; a product into divided features
//             reads all of its input, one out of them gives partial sums that are added up
//   sequence  between those products each rank works on its share of the tokens
//   context   each rank holds a share of every sequence and gathers keys and values
//   expert    each rank holds some of the routed experts; tokens travel to them and back
//   pipeline  each rank holds some of the layers and sends hidden states on; an encoder's stages
//             come before its decoder's, and its output goes through all of those
#pragma once

#include <vector>

#include "headroom/figures.h"
#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom {

/// Which part of a pipeline a rank runs; `whole` where there is no pipeline.
enum class Stage { whole, first, middle, last };

/// The graph of one rank of `stage`. Its `sizes` are the rank's own: heads, inner width and
/// vocabulary of a rank, layers of a stage. `plan` must be legal. Sources: arXiv 1909.08053
/// (tensor), 2205.05198 (sequence), 2104.04473 (pipeline), 2310.01889 (context).
[[nodiscard]] Graph shard(const Graph& graph, const ParallelPlan& plan, Stage stage = Stage::whole);

/// The same of the stage at `place`, 0 the first; Stage::middle is the one at 1.
[[nodiscard]] Graph shard_stage(const Graph& graph, const ParallelPlan& plan, std::int64_t place);

/// The sizes of one rank, out of the whole model's. Key-value heads are repeated where there are
/// more ranks than heads, the vocabulary is padded to a multiple of the ranks.
[[nodiscard]] Bindings rank_sizes(const Bindings& sizes, const ParallelPlan& plan);

/// The workload's symbols as one rank sees them: its share of every sequence, all visible keys.
/// `workload.batch_size` is what one pass of the rank processes. Of an encoder-decoder with
/// sequence parallelism both lengths are the same.
[[nodiscard]] Bindings rank_bindings(const Workload& workload, const LayerTraits& traits,
                                     const ParallelPlan& plan);

/// A rank's formula in the whole model's sizes: h of a rank becomes h·τ⁻¹, and so on; related sizes
/// are collapsed.
[[nodiscard]] Expr in_whole_sizes(const Expr& formula, const Graph& whole);

/// Whether tensor parallelism divides this weight, or every rank of the group holds all of it.
[[nodiscard]] bool is_divided(const Weight& weight);

/// The head computes only the last token of each sequence, as serving engines do. graph -> graph.
[[nodiscard]] Graph with_last_token_head(const Graph& graph);

/// One exchange of a pass: a collective operator of a graph, all its layers together.
struct Exchange {
  std::string path;
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  Expr bytes;  ///< as Collective::bytes, of one layer
  Expr repeat;
  bool backward = false;
};

/// All exchanges of a sharded graph, forward and backward.
[[nodiscard]] std::vector<Exchange> exchanges_of(const Graph& sharded);

/// Bytes that one rank sends over the network for one exchange among `ranks`, by ring algorithms:
/// all-reduce 2·(n − 1)/n of the buffer, all-gather and reduce-scatter (n − 1) shares, all-to-all
/// (n − 1)/n of the buffer.
[[nodiscard]] double wire_bytes(CollectiveKind kind, double bytes, std::int64_t ranks) noexcept;

[[nodiscard]] std::string_view name_of(RankGroup group) noexcept;
[[nodiscard]] std::string_view name_of(CollectiveKind kind) noexcept;
[[nodiscard]] std::string_view name_of(Stage stage) noexcept;

}  // namespace headroom
