// Weights of one rank: slices of those of the whole model. Internal to src/measured.
#pragma once

#include "rank_context.h"
#include "weights.h"

namespace headroom::measured {

/// A source of a rank's slices of the weights of `whole`, a source of all of them, so that all
/// ranks together have the weights that one process has. Holds one whole tensor at a time.
///
/// A divided weight is sliced along its divided size: heads, intermediate size or vocabulary, whose
/// padding is zeros. Of spread experts a rank has the next few. Biases and position tables of an
/// operator whose outputs are summed over the ranks belong to the first rank; the others have
/// zeros, so that they count once. Blocks and groups stay, unless a slice cuts them or has padding:
/// it then has their values. `rank`, `whole` and `model`, the whole model's graph, must
/// outlive the source.
[[nodiscard]] std::unique_ptr<WeightSource> rank_weights(const Graph& model,
                                                         const RankContext& rank,
                                                         WeightSource& whole);

}  // namespace headroom::measured
