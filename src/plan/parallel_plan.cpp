#include "headroom/parallel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "headroom/error.h"
#include "op_exprs.h"
#include "stage_layout.h"

namespace headroom {
namespace {

bool divides(std::int64_t divisor, std::int64_t value) noexcept { return value % divisor == 0; }

bool has_two_stacks(const Graph& graph) {
  return std::ranges::any_of(graph.blocks, [](const Block& block) {
    return std::ranges::any_of(
        block.nodes, [](const Node& node) { return node.component.stack != StackRole::single; });
  });
}

/// Whether some node of the graph is so.
template <class Predicate>
bool any_node(const Graph& graph, Predicate predicate) {
  return std::ranges::any_of(graph.blocks, [&](const Block& block) {
    return std::ranges::any_of(block.nodes, predicate);
  });
}

bool is_fused(const Graph& graph) {
  return !any_node(graph, [](const Node& node) {
    return std::holds_alternative<AttentionScores>(node.op) ||
           std::holds_alternative<LinearAttention>(node.op) ||
           std::holds_alternative<GatedDelta>(node.op);
  });
}

/// Operators whose heads or widths are not the model's own have other sizes than its other layers,
/// which no plan here divides.
bool divides_all(const Graph& graph) {
  constexpr std::array kInner{Part::mlp_activation, Part::mlp_experts_activation,
                              Part::mlp_shared_expert};
  return !any_node(graph, [&](const Node& node) {
    const bool gated = std::holds_alternative<GatedActivation>(node.op);
    const bool inner = (gated || std::holds_alternative<Activation>(node.op)) &&
                       std::ranges::find(kInner, node.component.part) != kInner.end();
    const bool core = std::holds_alternative<AttentionScores>(node.op) ||
                      std::holds_alternative<FusedAttention>(node.op) ||
                      std::holds_alternative<LinearAttention>(node.op) ||
                      std::holds_alternative<GatedDelta>(node.op);
    return (inner || core) && !detail::mentions_divided(node.op);
  });
}

/// Layers that go from position to position, or look at their neighbours, without attention.
bool has_other_layers(const Graph& graph) {
  return any_node(graph, [](const Node& node) {
    return node.component.part == Part::recurrent_core || node.component.part == Part::convolution;
  });
}

Violation layer_violation(const ParallelPlan& plan, const ShardingLimits& limits) noexcept {
  const bool divides = plan.tensor > 1 || plan.context > 1;
  return divides && limits.other_layers ? Violation::layer_kind : Violation::none;
}

Violation tensor_violation(const ParallelPlan& plan, const ShardingLimits& limits) noexcept {
  if (!divides(plan.tensor, limits.heads)) return Violation::tensor_heads;
  const bool shared_evenly =
      divides(plan.tensor, limits.kv_heads) || divides(limits.kv_heads, plan.tensor);
  if (!shared_evenly) return Violation::tensor_kv_heads;
  if (!divides(plan.tensor, limits.inner_widths)) return Violation::tensor_intermediate;
  if (plan.tensor > 1 && !limits.divides_all) return Violation::tensor_layers;
  if (plan.sequence == SequenceParallel::off) return Violation::none;
  if (plan.tensor == 1) return Violation::sequence_without_tensor;
  if (!limits.training) return Violation::sequence_serving;
  const bool shared = divides(plan.tensor * plan.context, limits.seq_len);
  return shared ? Violation::none : Violation::sequence_length;
}

Violation pipeline_violation(const ParallelPlan& plan, const ShardingLimits& limits) noexcept {
  if (plan.pipeline == 1) {
    return plan.interleave == 1 ? Violation::none : Violation::interleave_without_pipeline;
  }
  if (!limits.one_stack && !limits.training) return Violation::pipeline_serving;
  if (plan.pipeline > limits.layers.total()) return Violation::pipeline_layers;
  if (plan.interleave == 1) return Violation::none;
  if (!limits.one_stack) return Violation::interleave_two_stacks;
  const bool even = divides(plan.pipeline * plan.interleave, limits.layers.main);
  return even ? Violation::none : Violation::interleave_layers;
}

Violation context_violation(const ParallelPlan& plan, const ShardingLimits& limits) noexcept {
  if (plan.context == 1) return Violation::none;
  if (!limits.training) return Violation::context_serving;
  if (!limits.one_stack) return Violation::context_two_stacks;
  if (!limits.fused_attention) return Violation::context_attention;
  // Two pieces a rank, one from each end, so that a causal mask leaves every rank the same work.
  return divides(2 * plan.context, limits.seq_len) ? Violation::none : Violation::context_length;
}

Violation expert_violation(const ParallelPlan& plan, const ShardingLimits& limits) noexcept {
  if (plan.expert == 1) return Violation::none;
  if (limits.experts == 0 || !divides(plan.expert, limits.experts)) return Violation::expert_count;
  return divides(plan.expert, plan.replicas()) ? Violation::none : Violation::expert_ranks;
}

Error illegal(const std::string& message, const std::string& hint) {
  return {ErrorCode::invalid_input, message, {}, hint};
}

}  // namespace

ShardingLimits limits_of(const Graph& graph, std::int64_t seq_len) {
  const auto size = [&](Symbol symbol) {
    return static_cast<std::int64_t>(graph.sizes.get(symbol).value_or(0));
  };
  ShardingLimits limits;
  limits.heads = std::max<std::int64_t>(1, size(Symbol::num_attention_heads));
  limits.kv_heads = std::max<std::int64_t>(1, size(Symbol::num_key_value_heads));
  for (const Symbol width : {Symbol::intermediate_size, Symbol::moe_intermediate_size,
                             Symbol::shared_intermediate_size}) {
    limits.inner_widths = std::gcd(limits.inner_widths, size(width));
  }
  limits.experts = size(Symbol::num_experts);
  limits.divides_all = divides_all(graph);
  limits.layers = detail::layers_of(graph);
  // Layers that share their weights stay on one rank.
  const bool shared = std::ranges::any_of(
      graph.blocks, [](const Block& block) { return block.layers_per_weights > 1; });
  if (shared) limits.layers = {0, 1};
  limits.seq_len = seq_len;
  limits.one_stack = !has_two_stacks(graph);
  limits.other_layers = has_other_layers(graph);
  limits.fused_attention = is_fused(graph);
  limits.training = graph.options.phase == Phase::train;
  return limits;
}

Violation violation_of(const ParallelPlan& plan, const ShardingLimits& limits) noexcept {
  const std::int64_t least =
      std::min({plan.tensor, plan.pipeline, plan.interleave, plan.data, plan.context, plan.expert});
  if (least < 1) return Violation::below_one;
  for (const auto rule : {layer_violation, tensor_violation, pipeline_violation, context_violation,
                          expert_violation}) {
    const Violation violation = rule(plan, limits);
    if (violation != Violation::none) return violation;
  }
  return Violation::none;
}

void require_legal(const ParallelPlan& plan, const ShardingLimits& limits) {
  switch (violation_of(plan, limits)) {
    case Violation::none:
      return;
    case Violation::below_one:
      throw illegal("a degree of parallelism is below 1", "give each a value of 1 or more");
    case Violation::tensor_heads:
      throw illegal(
          fmt::format("--tp {} does not divide {} attention heads", plan.tensor, limits.heads),
          "take a divisor of the heads");
    case Violation::tensor_kv_heads:
      throw illegal(fmt::format("--tp {} and {} key-value heads do not divide one another",
                                plan.tensor, limits.kv_heads),
                    "take a divisor or a multiple of the key-value heads");
    case Violation::tensor_intermediate:
      throw illegal(fmt::format("--tp {} does not divide the inner width {}", plan.tensor,
                                limits.inner_widths),
                    "take a divisor of all networks' inner widths");
    case Violation::tensor_layers:
      throw illegal("--tp divides layers of one size, and some of this model's differ",
                    "leave out --tp");
    case Violation::sequence_without_tensor:
      throw illegal("--sp shares the sequence among tensor-parallel ranks, and --tp is 1",
                    "add --tp, or leave out --sp");
    case Violation::sequence_serving:
      throw illegal("--sp is about training", "leave out --sp when serving");
    case Violation::sequence_length:
      throw illegal(fmt::format("--tp {} × --cp {} does not divide the {} tokens of a sequence",
                                plan.tensor, plan.context, limits.seq_len),
                    "choose --seq so that it does, or leave out --sp");
    case Violation::pipeline_layers:
      throw illegal(fmt::format("--pp {} has more stages than the model's {} layers", plan.pipeline,
                                limits.layers.total()),
                    "take fewer stages");
    case Violation::pipeline_serving:
      throw illegal(
          "--pp of an encoder-decoder is about training: its encoder's stages have nothing "
          "to do in a decode step",
          "leave out --pp when serving");
    case Violation::interleave_layers:
      throw illegal(fmt::format("--pp {} × --interleave {} does not divide {} layers",
                                plan.pipeline, plan.interleave, limits.layers.main),
                    "choose --interleave so that it does");
    case Violation::interleave_without_pipeline:
      throw illegal("--interleave is about a pipeline, and --pp is 1",
                    "add --pp, or leave out --interleave");
    case Violation::context_length:
      throw illegal(fmt::format("2 × --cp {} does not divide the {} tokens of a sequence",
                                plan.context, limits.seq_len),
                    "choose --seq so that it does");
    case Violation::context_attention:
      throw illegal("--cp needs an attention that never holds all pairs",
                    "add --attention fused, or leave out --cp");
    case Violation::context_serving:
      throw illegal("--cp is about training", "leave out --cp when serving");
    case Violation::expert_count:
      throw illegal(limits.experts == 0
                        ? std::string("--ep spreads routed experts, and this model has none")
                        : fmt::format("--ep {} does not divide {} routed experts", plan.expert,
                                      limits.experts),
                    limits.experts == 0 ? "leave out --ep" : "take a divisor of the experts");
    case Violation::expert_ranks:
      throw illegal(fmt::format("--ep {} does not divide --dp {} × --cp {}, whose ranks hold the "
                                "experts",
                                plan.expert, plan.data, plan.context),
                    "take a divisor of that product");
    case Violation::interleave_two_stacks:
      throw illegal(
          "--interleave is for a model with one stack: an encoder-decoder's stages are its "
          "encoder's and then its decoder's",
          "leave out --interleave");
    case Violation::context_two_stacks:
      throw illegal("--cp shares out one sequence, and an encoder-decoder has two",
                    "leave out --cp");
    case Violation::layer_kind:
      throw illegal(
          "recurrent and convolutional layers are not divided: --tp is about heads and inner "
          "widths, --cp about attention",
          "leave out --tp and --cp; --dp and --pp take whole layers");
  }
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
  return text.empty() ? "one device" : text;
}

}  // namespace headroom
