// Messages between ranks in a sharded graph, and the operators beside them. Internal to src/plan.
#pragma once

#include <set>
#include <string>

#include "headroom/analysis.h"
#include "headroom/graph.h"

namespace headroom::detail {

/// Paths of the operators on tokens that expert parallelism exchanges.
[[nodiscard]] std::set<std::string> exchanged_paths(const Graph& graph);

/// Bytes of the tokens that are ordered by expert before the first of a layer's expert GEMMs.
[[nodiscard]] Expr permuted_bytes(const Node& node);

/// Bytes of the hidden states that a stage sends on: the last ones of each stack.
[[nodiscard]] Expr hidden_bytes(const Graph& graph);

/// Bytes of the keys that an indexer chose, as int32, which a stage sends on if the next one's
/// first layers read them. Engines fill up rows of fewer keys than it may choose; only short
/// sequences have such.
[[nodiscard]] Expr key_choice_bytes();

/// True for the GEMMs of a layer that can run beside the collective at `node`: those that read the
/// sequence that it gathers, or make the sums that it scatters.
[[nodiscard]] bool is_beside(const Node& gemm, const Node& node);

/// The module that a collective belongs to: of the operator that reads what arrives, else of the
/// one before. Modules run from their first collective to their last.
[[nodiscard]] LayerPart part_of_collective(const Block& block, const Node& node);

}  // namespace headroom::detail
