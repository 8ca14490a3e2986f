#include <utility>

#include "graph_passes.h"

namespace headroom::detail {
namespace {

/// The input that holds keys and values: the last one that is not a bias.
std::size_t key_input(const std::vector<TensorId>& inputs, ScoreBias bias) {
  return inputs.size() - (bias == ScoreBias::relative_position ? 2 : 1);
}

Expr with_whole_keys(const Expr& expr) {
  return expr.substitute(Symbol::seq_len, Symbol::visible_keys);
}

/// Puts the gathering of keys and values in front of `node`, which is a fused self-attention.
Node gather_keys(Graph& graph, Node& node) {
  auto& attention = std::get<FusedAttention>(node.op);
  const AttentionShape& shape = attention.shape;
  const Expr pair_count = shape.queries * shape.keys;
  const Expr width = shape.kv_heads * (shape.head_dim + shape.value_head_dim);
  const Expr share = shape.batch * shape.keys * width * Symbol::activation_bytes;
  if (attention.pairs == pair_count) attention.pairs = shape.queries * with_whole_keys(shape.keys);
  graph.tensors.push_back(
      {node.path + ".keys", {shape.batch, with_whole_keys(shape.keys), width}, {}});
  const TensorId gathered = graph.tensors.size() - 1;
  TensorId& keys = node.inputs[key_input(node.inputs, attention.shaping.bias)];
  const Collective gather{RankGroup::context,
                          CollectiveKind::all_gather,
                          CollectiveKind::reduce_scatter,
                          share,
                          Symbol::visible_keys,
                          Symbol::seq_len};
  const TensorId held = std::exchange(keys, gathered);
  // The query came in the same tensor.
  if (node.inputs.size() == 1) node.inputs.insert(node.inputs.begin(), held);
  attention.shape.keys = with_whole_keys(shape.keys);
  return {node.path + ".all_gather",
          {node.component.stack, Part::communication},
          gather,
          {held},
          gathered,
          {},
          Placement::new_buffer,
          node.layer};
}

bool reads_own_tokens(const Node& node) {
  const auto* attention = std::get_if<FusedAttention>(&node.op);
  return attention != nullptr && attention->keys == KeySource::projections &&
         attention->shape.keys.degree(Symbol::seq_len) > 0;
}

}  // namespace

// Layers that see a window gather all keys too, as TransformerEngine's do: a kernel takes from the
// gathered keys what the window leaves.
Graph context_parallel(const Graph& graph) {
  Graph result = graph;
  for (Block& block : result.blocks) {
    std::vector<Node> nodes;
    for (Node node : std::exchange(block.nodes, {})) {
      if (reads_own_tokens(node)) nodes.push_back(gather_keys(result, node));
      nodes.push_back(std::move(node));
    }
    block.nodes = std::move(nodes);
  }
  return result;
}

}  // namespace headroom::detail
