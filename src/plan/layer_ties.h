// Tensors of a layer that later layers read. Internal to src/plan.
#pragma once

#include <vector>

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// Values that tie layers: keys and values, cached or not, or the keys that an indexer chose. A
/// pipeline sends only the latter on; engines do so since 2026 (github.com/sgl-project/sglang,
/// pull request 28532).
enum class TiedValue { key_values, key_choice };

/// A tensor that layers read from an earlier one, besides the hidden states between them.
struct LayerTie {
  TensorId tensor = 0;
  TiedValue value = TiedValue::key_values;
  LayerRange readers;  ///< from the layer behind the one that makes it to the last that reads it
};

/// All ties between layers of a pipeline. Layers are counted through both stacks, an encoder's
/// first.
[[nodiscard]] std::vector<LayerTie> layer_ties(const Graph& graph);

/// The layers, in order, that read such a value of a layer before them, or that later ones read
/// across: in front of these, a cut separates them from it.
[[nodiscard]] std::vector<std::int64_t> tied_layers(const Graph& graph, TiedValue value);

}  // namespace headroom::detail
