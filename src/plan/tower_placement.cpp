// Image towers in a parallel plan.
#include <algorithm>

#include "graph_passes.h"

namespace headroom::detail {

bool in_tower(const Node& node) {
  switch (node.component.stack) {
    case StackRole::tower:
    case StackRole::audio_tower:
      return true;
    case StackRole::single:
    case StackRole::encoder:
    case StackRole::decoder:
      break;
  }
  return false;
}

Graph tower_outside_layers(Graph graph) {
  for (Block& block : graph.blocks) {
    if (std::ranges::any_of(block.nodes, in_tower)) block.layers_per_run = 0;
  }
  return graph;
}

bool trains_tower(const Graph& graph) {
  return std::ranges::all_of(graph.weights, [](const Weight& weight) {
    switch (weight.training) {
      case Training::trained:
        return true;
      case Training::frozen:
        break;
    }
    return false;
  });
}

}  // namespace headroom::detail
