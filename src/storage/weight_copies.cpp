#include "weight_copies.h"

#include <numeric>

namespace headroom::detail {
namespace {

std::vector<std::int64_t> layers_of_node(const Block& block, const Node& node, std::int64_t runs) {
  std::vector<std::int64_t> layers;
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t layer = block.weights_of(node, run);
    if (layers.empty() || layers.back() != layer) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

std::vector<std::vector<std::int64_t>> layers_of_copies(const Graph& graph) {
  std::vector<std::vector<std::int64_t>> layers(graph.weights.size());
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    const auto runs = static_cast<std::int64_t>(block.repeat.evaluate(graph.sizes));
    for (const Node& node : block.nodes) {
      for (const WeightId id : node.weights) {
        if (layers[id].empty()) layers[id] = layers_of_node(block, node, runs);
      }
    }
  }
  for (WeightId id = 0; id < layers.size(); ++id) {
    const auto copies = static_cast<std::size_t>(graph.weights[id].repeat.evaluate(graph.sizes));
    if (layers[id].size() == copies) continue;
    layers[id].resize(copies);
    std::iota(layers[id].begin(), layers[id].end(), 0);
  }
  return layers;
}

}  // namespace headroom::detail
