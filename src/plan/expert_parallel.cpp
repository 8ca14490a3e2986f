#include <utility>

#include "graph_passes.h"
#include "op_exprs.h"

namespace headroom::detail {
namespace {

Node all_to_all_for(const Node& node, const Expr& bytes, Dispatch dispatch, TensorId input,
                    TensorId output) {
  Collective all_to_all{RankGroup::expert, CollectiveKind::all_to_all, CollectiveKind::all_to_all,
                        bytes};
  all_to_all.dispatch = dispatch;
  return {node.path + ".all_to_all",
          {node.component.stack, Part::communication},
          all_to_all,
          {input},
          output,
          {},
          Placement::new_buffer,
          node.layer};
}

/// Sends tokens to the ranks of their experts, once for each selected expert. Every rank is assumed
/// to receive as many tokens as it sends.
Node to_experts(Graph& graph, Node& node, const Expr& bytes) {
  const auto& experts = std::get<ExpertLinear>(node.op);
  graph.tensors.push_back(
      {node.path + ".tokens", {experts.rows * experts.per_token, experts.in_features}, {}});
  const TensorId arrived = graph.tensors.size() - 1;
  const TensorId tokens = std::exchange(node.inputs.front(), arrived);
  return all_to_all_for(node, bytes, Dispatch::forward, tokens, arrived);
}

/// Sends the experts' outputs back to the ranks of their tokens.
Node from_experts(Graph& graph, Node& node, const Expr& bytes) {
  graph.tensors.push_back(graph.tensors[node.output]);
  const TensorId computed = graph.tensors.size() - 1;
  const TensorId returned = std::exchange(node.output, computed);
  return all_to_all_for(node, bytes, Dispatch::backward, computed, returned);
}

}  // namespace

Graph with_whole_experts(const Graph& graph) {
  const auto size = graph.sizes.get(Symbol::moe_intermediate_size);
  if (!size) return graph;
  const auto fixed = [&](const Expr& expr) {
    return expr.substitute(Symbol::moe_intermediate_size, *size);
  };
  Graph result = graph;
  for (Block& block : result.blocks) {
    for (Node& node : block.nodes) node.op = map_exprs(std::move(node.op), fixed);
  }
  for (Tensor& tensor : result.tensors) {
    for (Expr& length : tensor.shape) length = fixed(length);
  }
  for (Weight& weight : result.weights) {
    for (Expr& length : weight.shape) length = fixed(length);
  }
  return result;
}

Graph expert_parallel(const Graph& graph, std::int64_t degree) {
  Graph result = graph;
  const Integer local_experts = graph.sizes.get(Symbol::num_experts).value_or(0) / degree;
  for (Block& block : result.blocks) {
    std::vector<Node> nodes;
    for (Node node : std::exchange(block.nodes, {})) {
      auto* experts = std::get_if<ExpertLinear>(&node.op);
      if (experts == nullptr) {
        nodes.push_back(std::move(node));
        continue;
      }
      experts->num_experts = local_experts;
      for (const WeightId id : node.weights) result.weights[id].shape.front() = local_experts;
      const Expr routed_rows = experts->rows * experts->per_token * Symbol::activation_bytes;
      if (experts->source == ExpertLinear::Source::tokens) {
        nodes.push_back(to_experts(result, node, routed_rows * experts->in_features));
        nodes.push_back(std::move(node));
      } else {
        const Expr bytes = routed_rows * experts->out_features;
        nodes.push_back(std::move(node));
        nodes.push_back(from_experts(result, nodes.back(), bytes));
      }
    }
    block.nodes = std::move(nodes);
  }
  return result;
}

}  // namespace headroom::detail
