#include "headroom/parallel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "graph_passes.h"
#include "layer_ties.h"
#include "op_exprs.h"
#include "op_kind.h"
#include "stage_layout.h"

namespace headroom {
namespace {

using detail::OpKind;

/// Of an image tower's nodes none, since no plan divides them.
template <class Predicate>
bool any_node(const Graph& graph, Predicate predicate) {
  return std::ranges::any_of(graph.blocks, [&](const Block& block) {
    return std::ranges::any_of(
        block.nodes, [&](const Node& node) { return !detail::in_tower(node) && predicate(node); });
  });
}

bool has_two_stacks(const Graph& graph) {
  return any_node(graph,
                  [](const Node& node) { return node.component.stack != StackRole::single; });
}

/// True for operators that tensor parallelism must divide: attention by heads, activations of a
/// feed-forward network by intermediate size.
bool must_be_divided(const Node& node) {
  constexpr std::array kFeedForward{Part::mlp_activation, Part::mlp_experts_activation,
                                    Part::mlp_shared_expert};
  switch (detail::kind_of(node.op)) {
    case OpKind::eager_attention:
    case OpKind::fused_attention:
    case OpKind::linear_attention:
      return true;
    case OpKind::activation:
      return std::ranges::find(kFeedForward, node.component.part) != kFeedForward.end();
    case OpKind::word_embedding:
    case OpKind::relative_position_bias:
    case OpKind::linear:
    case OpKind::expert_linear:
    case OpKind::expert_combine:
    case OpKind::indexer:
    case OpKind::loss:
    case OpKind::collective:
    case OpKind::other:
      break;
  }
  return false;
}

/// False if a layer's heads or intermediate size are numbers of its own instead of the model's
/// symbols: no plan divides such numbers.
bool has_uniform_layers(const Graph& graph) {
  return !any_node(graph, [](const Node& node) {
    return must_be_divided(node) && !detail::mentions_divided(node.op);
  });
}

bool has_part(const Graph& graph, Part part) {
  return any_node(graph, [part](const Node& node) { return node.component.part == part; });
}

/// False if the last operator leaves each rank the heads that it computed.
bool ends_whole(const Graph& graph) {
  const bool has_attention =
      has_part(graph, Part::attention_context) || has_part(graph, Part::attention_core) ||
      has_part(graph, Part::cross_attention_context) || has_part(graph, Part::cross_attention_core);
  return !has_attention || has_part(graph, Part::attention_out) ||
         has_part(graph, Part::cross_attention_out);
}

/// True if a plan divides the groups of state-space heads that share B and C.
bool divides_state_groups(const Graph& graph) {
  return any_node(graph, [](const Node& node) {
    const auto* const scan = std::get_if<StateSpaceScan>(&node.op);
    return scan != nullptr && scan->groups.degree(Symbol::n_groups) > 0;
  });
}

/// True if a plan divides the heads of gated delta layers.
bool divides_delta_heads(const Graph& graph) {
  return any_node(graph, [](const Node& node) {
    const auto* const delta = std::get_if<GatedDelta>(&node.op);
    return delta != nullptr && delta->key_heads.degree(Symbol::linear_num_key_heads) > 0;
  });
}

/// RWKV's layers shift whole rows, and have no attention heads to divide. A model of state-space
/// layers alone has none either: their own heads are divided as multiples of attention heads.
bool has_recurrence_or_convolution(const Graph& graph) {
  const bool no_heads = graph.sizes.get(Symbol::num_attention_heads).value_or(0) == 0;
  return has_part(graph, Part::recurrent_core) || has_part(graph, Part::convolution) ||
         any_node(graph, [&](const Node& node) {
           return std::holds_alternative<TokenShift>(node.op) ||
                  (no_heads && std::holds_alternative<StateSpaceScan>(node.op));
         });
}

/// True if a layer reads the hidden states in front of an earlier one: attention residuals, block
/// connections.
bool reads_earlier_states(const Graph& graph) {
  std::set<TensorId> earlier;
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    for (const Node& node : block.nodes) {
      const auto is_earlier = [&](TensorId input) {
        return input != block.carried_in && earlier.contains(input);
      };
      if (std::ranges::any_of(node.inputs, is_earlier)) return true;
    }
    earlier.insert(block.carried_in);
  }
  return false;
}

/// True if layers read more of earlier layers than the hidden states behind them: values of the
/// first one, or the hidden states in front of earlier ones.
bool reads_earlier_layers(const Graph& graph) {
  return reads_earlier_states(graph) || any_node(graph, [](const Node& node) {
           const auto* const mix = std::get_if<TokenMix>(&node.op);
           return mix != nullptr && mix->weight == MixWeight::gate;
         });
}

/// True if a loss reads logits of the vocabulary's words.
bool predicts_words(const Graph& graph) {
  return any_node(graph, [&](const Node& node) {
    return detail::kind_of(node.op) == OpKind::loss &&
           graph.tensors[node.inputs.front()].elements().degree(Symbol::vocab_size) > 0;
  });
}

/// True if layers attend to rows that the first stage makes of images, which no stage sends on.
bool reads_images_in_layers(const Graph& graph) {
  return std::ranges::any_of(graph.weights, [](const Weight& weight) {
    return weight.component.part == Part::cross_attention_key_value &&
           weight.component.stack == StackRole::single;
  });
}

/// Layers with the same weights stay on one rank, and so do those that read one table with values
/// for each of them, tensors of earlier layers, or rows of images.
bool has_separable_layers(const Graph& graph) {
  const bool share = std::ranges::any_of(
      graph.blocks, [](const Block& block) { return block.layers_per_weights > 1; });
  return !share && !reads_earlier_layers(graph) && !reads_images_in_layers(graph) &&
         std::ranges::none_of(graph.weights, [](const Weight& weight) {
           return weight.elements().degree(Symbol::num_hidden_layers) > 0;
         });
}

}  // namespace

ShardingLimits limits_of(const Graph& graph, std::int64_t seq_len) {
  const auto size = [&](Symbol symbol) {
    return static_cast<std::int64_t>(graph.sizes.get(symbol).value_or(0));
  };
  ShardingLimits limits;
  limits.heads = std::max<std::int64_t>(1, size(Symbol::num_attention_heads));
  limits.kv_heads = std::max<std::int64_t>(1, size(Symbol::num_key_value_heads));
  if (divides_state_groups(graph)) limits.state_groups = size(Symbol::n_groups);
  if (divides_delta_heads(graph)) limits.delta_key_heads = size(Symbol::linear_num_key_heads);
  for (const Symbol width : {Symbol::intermediate_size, Symbol::moe_intermediate_size,
                             Symbol::shared_intermediate_size}) {
    limits.intermediate_size = std::gcd(limits.intermediate_size, size(width));
  }
  limits.experts = size(Symbol::num_experts);
  limits.uniform_layers = has_uniform_layers(graph) && ends_whole(graph);
  limits.layers = detail::layers_of(graph);
  limits.separable_layers = has_separable_layers(graph);
  limits.joined_layers = detail::tied_layers(graph, detail::TiedValue::key_values);
  limits.seq_len = seq_len;
  limits.one_stack = !has_two_stacks(graph);
  limits.all_attention = !has_recurrence_or_convolution(graph);
  limits.compressed_attention = has_part(graph, Part::attention_compressor);
  limits.indexed_attention = has_part(graph, Part::attention_indexer);
  limits.predicts_words = predicts_words(graph);
  limits.denoises = has_part(graph, Part::modulation);
  limits.fused_attention = !detail::has_kind(graph, OpKind::eager_attention);
  limits.running_state = detail::has_kind(graph, OpKind::linear_attention);
  limits.training = graph.options.phase == Phase::train;
  return limits;
}

std::string describe(const ParallelPlan& plan) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " · ") + word; };
  const auto degree = [&](const char* name, std::int64_t value) {
    if (value > 1) add(fmt::format("{} {}", name, value));
  };
  degree("tp", plan.tensor);
  if (plan.sequence == SequenceParallel::on) add("sp");
  degree("pp", plan.pipeline);
  degree("interleave", plan.interleave);
  degree("dp", plan.data);
  degree("cp", plan.context);
  degree("ep", plan.expert);
  if (plan.expert_tensor == ExpertTensor::whole && plan.tensor > 1) add("etp 1");
  const bool by_node = plan.expert_exchange == ExpertExchange::by_node;
  if (by_node && plan.expert > 1) add("exchange by node");
  if (plan.batch_overlap == BatchOverlap::two_batches) add("two-batch overlap");
  return text.empty() ? "one device" : text;
}

}  // namespace headroom
