#include <utility>

#include "graph_passes.h"
#include "op_exprs.h"

namespace headroom::detail {
namespace {

/// Tokens on their way to the experts or back.
struct Exchange {
  Expr bytes;
  Dispatch dispatch;
  TokenRouting routing;
};

Node all_to_all_for(const Node& node, const Exchange& exchange, TensorId input, TensorId output) {
  Collective all_to_all{RankGroup::expert, CollectiveKind::all_to_all, CollectiveKind::all_to_all,
                        exchange.bytes};
  all_to_all.dispatch = exchange.dispatch;
  all_to_all.routing = exchange.routing;
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
Node to_experts(Graph& graph, Node& node, const Expr& bytes, const TokenRouting& routing) {
  const auto& experts = std::get<ExpertLinear>(node.op);
  graph.tensors.push_back(
      {node.path + ".tokens", {experts.rows * experts.per_token, experts.in_features}, {}});
  const TensorId arrived = graph.tensors.size() - 1;
  const TensorId tokens = std::exchange(node.inputs.front(), arrived);
  return all_to_all_for(node, {bytes, Dispatch::forward, routing}, tokens, arrived);
}

/// Sends the experts' outputs back to the ranks of their tokens.
Node from_experts(Graph& graph, Node& node, const Expr& bytes, const TokenRouting& routing) {
  graph.tensors.push_back(graph.tensors[node.output]);
  const TensorId computed = graph.tensors.size() - 1;
  const TensorId returned = std::exchange(node.output, computed);
  return all_to_all_for(node, {bytes, Dispatch::backward, routing}, computed, returned);
}

TokenRouting routing_of(const RouterSelect& router) {
  const ExpertsSpec& spec = router.spec;
  return {spec.num_experts, spec.num_experts_per_tok, spec.num_groups, spec.chosen_groups};
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
    TokenRouting routing;  // of the router before the experts
    std::vector<Node> nodes;
    for (Node node : std::exchange(block.nodes, {})) {
      if (const auto* router = std::get_if<RouterSelect>(&node.op)) routing = routing_of(*router);
      auto* experts = std::get_if<ExpertLinear>(&node.op);
      if (experts == nullptr) {
        nodes.push_back(std::move(node));
        continue;
      }
      experts->num_experts = local_experts;
      for (const WeightId id : node.weights) result.weights[id].shape.front() = local_experts;
      const Expr routed_rows = experts->rows * experts->per_token * Symbol::activation_bytes;
      if (experts->source == ExpertLinear::Source::tokens) {
        nodes.push_back(to_experts(result, node, routed_rows * experts->in_features, routing));
        nodes.push_back(std::move(node));
      } else {
        const Expr bytes = routed_rows * experts->out_features;
        nodes.push_back(std::move(node));
        nodes.push_back(from_experts(result, nodes.back(), bytes, routing));
      }
    }
    block.nodes = std::move(nodes);
  }
  return result;
}

}  // namespace headroom::detail
