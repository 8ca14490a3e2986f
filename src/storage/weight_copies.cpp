#include "weight_copies.h"

#include <algorithm>
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
    if (!block.is_layers() && block.first_layer == 0) continue;
    const auto runs = block.repeat.evaluate_int64(graph.sizes);
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

std::vector<std::vector<std::int64_t>> layers_of_copies(const ModelSpec& spec, const Graph& graph) {
  std::vector<std::vector<std::int64_t>> layers = layers_of_copies(graph);
  const bool has_tower = spec.tower || spec.audio_tower;
  if (!has_tower && !spec.main_stack().self_attention.global) return layers;
  const Graph whole = build_graph(spec, all_parts());
  const auto of_whole = layers_of_copies(whole);
  for (WeightId id = 0; id < std::min(layers.size(), of_whole.size()); ++id) {
    const bool same = whole.weights[id].path == graph.weights[id].path;
    if (same && of_whole[id].size() == layers[id].size()) layers[id] = of_whole[id];
  }
  return layers;
}

}  // namespace headroom::detail
