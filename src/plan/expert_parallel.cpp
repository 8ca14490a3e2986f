#include <utility>

#include "graph_passes.h"

namespace headroom::detail {
namespace {

Node exchange_beside(const Node& node, const char* name, const Expr& bytes, TensorId input,
                     TensorId output) {
  const Collective exchange{RankGroup::expert, CollectiveKind::all_to_all,
                            CollectiveKind::all_to_all, bytes};
  return {node.path + name,
          {node.component.stack, Part::communication},
          exchange,
          {input},
          output,
          {},
          Placement::new_buffer,
          node.layer};
}

/// Tokens on their way to the ranks that hold their experts, once for each expert that they take;
/// every rank gets as many as it sends.
Node to_experts(Graph& graph, Node& node, const Expr& bytes) {
  const auto& experts = std::get<ExpertLinear>(node.op);
  graph.tensors.push_back(
      {node.path + ".tokens", {experts.rows * experts.per_token, experts.in_features}, {}});
  const TensorId arrived = graph.tensors.size() - 1;
  const TensorId tokens = std::exchange(node.inputs.front(), arrived);
  return exchange_beside(node, ".all_to_all", bytes, tokens, arrived);
}

/// What the experts made on its way back, to those who read it.
Node from_experts(Graph& graph, Node& node, const Expr& bytes) {
  graph.tensors.push_back(graph.tensors[node.output]);
  const TensorId made = graph.tensors.size() - 1;
  const TensorId returned = std::exchange(node.output, made);
  return exchange_beside(node, ".all_to_all", bytes, made, returned);
}

}  // namespace

Graph expert_parallel(const Graph& graph, std::int64_t degree) {
  Graph result = graph;
  const Integer held = graph.sizes.get(Symbol::num_experts).value_or(0) / degree;
  for (Block& block : result.blocks) {
    std::vector<Node> nodes;
    for (Node node : std::exchange(block.nodes, {})) {
      auto* experts = std::get_if<ExpertLinear>(&node.op);
      if (experts == nullptr) {
        nodes.push_back(std::move(node));
        continue;
      }
      experts->num_experts = held;
      for (const WeightId id : node.weights) result.weights[id].shape.front() = held;
      const Expr taken = experts->rows * experts->per_token * Symbol::activation_bytes;
      if (experts->source == ExpertLinear::Source::tokens) {
        nodes.push_back(to_experts(result, node, taken * experts->in_features));
        nodes.push_back(std::move(node));
      } else {
        const Expr bytes = taken * experts->out_features;
        nodes.push_back(std::move(node));
        nodes.push_back(from_experts(result, nodes.back(), bytes));
      }
    }
    block.nodes = std::move(nodes);
  }
  return result;
}

}  // namespace headroom::detail
