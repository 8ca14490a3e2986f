#include <utility>

#include "graph_passes.h"

namespace headroom::detail {
namespace {

/// Index of the input with keys and values: the last one except a bias.
std::size_t key_input(const std::vector<TensorId>& inputs, ScoreBias bias) {
  return inputs.size() - (bias == ScoreBias::relative_position ? 2 : 1);
}

Expr with_whole_keys(const Expr& expr) {
  return expr.substitute(Symbol::seq_len, Symbol::visible_keys);
}

/// Makes `node`, a fused self-attention, read all keys and values; returns the all-gather that goes
/// before it.
Node gather_keys(Graph& graph, Node& node) {
  auto& attention = std::get<FusedAttention>(node.op);
  const AttentionShape& shape = attention.shape;
  const Expr all_pairs = shape.queries * shape.keys;
  const Expr width = shape.kv_heads * (shape.head_dim + shape.value_head_dim);
  const Expr shard_bytes = shape.batch * shape.keys * width * Symbol::activation_bytes;
  if (attention.pairs == all_pairs) attention.pairs = shape.queries * with_whole_keys(shape.keys);
  graph.tensors.push_back(
      {node.path + ".keys", {shape.batch, with_whole_keys(shape.keys), width}, {}});
  const TensorId gathered = graph.tensors.size() - 1;
  TensorId& keys = node.inputs[key_input(node.inputs, attention.shaping.bias)];
  const Collective gather{
      RankGroup::context, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
      shard_bytes,        Symbol::visible_keys,       Symbol::seq_len};
  const TensorId shard = std::exchange(keys, gathered);
  // A single input also holds the queries, which stay sharded.
  if (node.inputs.size() == 1) node.inputs.insert(node.inputs.begin(), shard);
  attention.shape.keys = with_whole_keys(shape.keys);
  return {node.path + ".all_gather",
          {node.component.stack, Part::communication},
          gather,
          {shard},
          gathered,
          {},
          Placement::new_buffer,
          node.layer};
}

/// True for fused attention over keys of this pass.
bool is_self_attention(const Node& node) {
  const auto* attention = std::get_if<FusedAttention>(&node.op);
  return attention != nullptr && attention->keys == KeySource::projections &&
         attention->shape.keys.degree(Symbol::seq_len) > 0;
}

}  // namespace

// Layers with a sliding window gather all keys too, as TransformerEngine's do; their kernel selects
// the window.
Graph context_parallel(const Graph& graph) {
  Graph result = graph;
  for (Block& block : result.blocks) {
    std::vector<Node> nodes;
    for (Node node : std::exchange(block.nodes, {})) {
      if (is_self_attention(node)) nodes.push_back(gather_keys(result, node));
      nodes.push_back(std::move(node));
    }
    block.nodes = std::move(nodes);
  }
  return result;
}

}  // namespace headroom::detail
