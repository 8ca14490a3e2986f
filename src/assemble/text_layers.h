// Figures of the text model alone, without towers. Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/graph.h"

namespace headroom::detail {

/// Parameters of the layers, without embeddings, final norm, head, towers and projectors.
[[nodiscard]] Expr layer_parameters(const Graph& graph);

/// Matrix FLOPs of the layers' forward pass; `analysis` is of `graph`.
[[nodiscard]] Expr layer_flops(const Graph& graph, const Analysis& analysis);

/// Parameters that a token of the text uses.
struct TextParameters {
  Expr all;
  Expr without_embeddings;  ///< Kaplan's N: without embeddings, position biases and head
};

/// Those of the parts that the pass runs; an encoder-decoder has both stacks in every phase.
[[nodiscard]] TextParameters text_parameters(const Graph& graph, ModelKind kind);

/// Parts beside the text model that have parameters, in words: "the image tower". A model of images
/// or sound alone has none.
[[nodiscard]] std::vector<std::string> parts_beside_text(const Graph& graph);

}  // namespace headroom::detail
