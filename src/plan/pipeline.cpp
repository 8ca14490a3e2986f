#include "pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace headroom::detail {
namespace {

/// Keeps only the weights that some node uses.
void drop_unused_weights(Graph& graph) {
  std::map<WeightId, WeightId> kept;
  std::vector<Weight> weights;
  for (Block& block : graph.blocks) {
    for (Node& node : block.nodes) {
      for (WeightId& weight : node.weights) {
        const auto [place, is_new] = kept.emplace(weight, weights.size());
        if (is_new) weights.push_back(graph.weights[weight]);
        weight = place->second;
      }
    }
  }
  graph.weights = std::move(weights);
}

/// The end of a stage: hidden states go on, and their gradients come back.
Block boundary(Graph& graph, TensorId hidden, const Expr& repeat) {
  graph.tensors.push_back(graph.tensors[hidden]);
  const TensorId sent = graph.tensors.size() - 1;
  const bool training = graph.options.phase == Phase::train;
  const Collective send{RankGroup::pipeline, CollectiveKind::send,
                        training ? CollectiveKind::send : CollectiveKind::none,
                        graph.tensors[hidden].elements() * Symbol::activation_bytes};
  Block block;
  block.path = "pipeline";
  block.repeat = repeat;
  block.nodes.push_back({"send",
                         {StackRole::single, Part::communication},
                         send,
                         {hidden},
                         sent,
                         {},
                         Placement::in_place});
  block.carried_in = hidden;
  block.carried_out = sent;
  return block;
}

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

/// Tokens on their way to the ranks that hold their experts; every rank gets as many as it sends.
Node to_experts(Graph& graph, Node& node, const Expr& bytes) {
  graph.tensors.push_back(graph.tensors[node.inputs.front()]);
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

/// Consecutive layers, from `begin` to before `end`.
struct LayerRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

LayerRange piece_of(std::int64_t layers, const ParallelPlan& plan, std::int64_t place,
                    std::int64_t chunk) {
  if (plan.interleave > 1) {
    const std::int64_t length = layers / (plan.pipeline * plan.interleave);
    const std::int64_t begin = (chunk * plan.pipeline + place) * length;
    return {begin, begin + length};
  }
  // The first stages have one layer more where the degree does not divide them.
  const std::int64_t more = layers % plan.pipeline;
  const std::int64_t begin = place * (layers / plan.pipeline) + std::min(place, more);
  return {begin, begin + layers_of_stage(layers, plan, place)};
}

/// A weight of layers stands for as many of them as its stage has.
void adopt_repeat(const Graph& stage, Weight& weight) {
  const auto id = static_cast<WeightId>(&weight - stage.weights.data());
  for (const Block& block : stage.blocks) {
    if (!block.is_layers() || block.layers_per_weights > 1) continue;
    for (const Node& node : block.nodes) {
      const bool uses = std::ranges::find(node.weights, id) != node.weights.end();
      if (uses) weight.repeat = block.repeat;
    }
  }
}

}  // namespace

std::vector<LayerBlock> layer_blocks(const Graph& graph) {
  std::vector<LayerBlock> blocks;
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    const auto runs = static_cast<std::int64_t>(block.repeat.evaluate(graph.sizes));
    blocks.push_back({block.first_layer, runs, block.layers_per_run});
  }
  return blocks;
}

std::vector<std::int64_t> runs_of_stage(const std::vector<LayerBlock>& blocks,
                                        const ParallelPlan& plan, std::int64_t place) {
  std::int64_t layers = 0;
  for (const LayerBlock& block : blocks) layers += block.runs * block.layers_per_run;
  std::vector<std::int64_t> runs(blocks.size());
  for (std::int64_t chunk = 0; chunk < plan.interleave; ++chunk) {
    const LayerRange piece = piece_of(layers, plan, place, chunk);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const LayerBlock& block = blocks[i];
      const std::int64_t end = block.first_layer + block.runs * block.layers_per_run;
      const std::int64_t from = std::max(piece.begin, block.first_layer);
      const std::int64_t to = std::min(piece.end, end);
      if (from >= to) continue;
      const bool whole = (from - block.first_layer) % block.layers_per_run == 0 &&
                         (to - block.first_layer) % block.layers_per_run == 0;
      if (!whole) return {};
      runs[i] += (to - from) / block.layers_per_run;
    }
  }
  return runs;
}

std::int64_t place_of(Stage stage, const ParallelPlan& plan) noexcept {
  switch (stage) {
    case Stage::whole:
    case Stage::first:
      return 0;
    case Stage::middle:
      return 1;
    case Stage::last:
      break;
  }
  return plan.pipeline - 1;
}

Graph stage_of(const Graph& graph, Stage stage, const ParallelPlan& plan) {
  if (stage == Stage::whole) return graph;
  const std::vector<std::int64_t> runs =
      runs_of_stage(layer_blocks(graph), plan, place_of(stage, plan));
  Graph result = graph;
  result.blocks.clear();
  std::optional<TensorId> hidden;
  std::optional<TensorId> received;
  std::size_t next = 0;
  const auto send_on = [&](std::int64_t times) {
    if (times > 0) result.blocks.push_back(boundary(result, *hidden, Integer{times}));
  };
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) {
      const bool in_front = next == 0;
      const bool runs_here = in_front ? stage == Stage::first : stage == Stage::last;
      // The last stage sends on all of its chunks but the last.
      if (!in_front && stage == Stage::last && result.blocks.back().is_layers()) {
        send_on(plan.interleave - 1);
      }
      if (runs_here) result.blocks.push_back(block);
      continue;
    }
    hidden = block.carried_out;
    const std::int64_t own = runs.at(next++);
    if (own == 0) continue;
    if (!received) received = block.carried_in;
    Block& placed = result.blocks.emplace_back(block);
    // One kind of layers keeps its symbol; the stage's sizes say how many.
    if (runs.size() > 1) placed.repeat = Integer{own};
  }
  if (stage != Stage::last) send_on(plan.interleave);
  if (stage != Stage::first && received) result.inputs = {*received};
  if (stage != Stage::last) result.outputs = {*hidden};
  drop_unused_weights(result);
  for (Weight& weight : result.weights) adopt_repeat(result, weight);
  return result;
}

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
