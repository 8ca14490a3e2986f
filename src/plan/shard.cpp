#include <algorithm>
#include <cmath>

#include "graph_passes.h"
#include "headroom/parallel_plan.h"
#include "op_exprs.h"
#include "stage_layout.h"
#include "tensor_parallel.h"

namespace headroom {
namespace {

void divide(Bindings& sizes, Symbol symbol, Integer degree) {
  if (const auto value = sizes.get(symbol)) sizes.set(symbol, ceil_div(*value, degree));
}

/// Pairs of a windowed layer on the rank with the most. Rank r has the r-th chunk from either end
/// of the sequence, so that without a window all ranks have equally many.
Integer windowed_pairs_of_rank(const Workload& workload, const LayerTraits& traits,
                               std::int64_t ranks) {
  if (traits.window.kind == WindowKind::none) return 0;
  const std::int64_t chunks = 2 * ranks;
  const std::int64_t length = ceil_div(workload.seq_len, chunks);
  Workload chunk = workload;
  chunk.seq_len = length;
  if (traits.window.kind == WindowKind::centred) {
    const Integer seen = std::min<Integer>(2 * Integer{traits.window.size} + 1, workload.seq_len);
    return checked_multiply(2 * Integer{length}, seen);
  }
  const auto pairs = [&](std::int64_t index) {
    chunk.past_len = workload.past_len + index * length;
    return *bindings_of(chunk, traits).get(Symbol::windowed_pairs);
  };
  Integer most = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    most = std::max(most, checked_add(pairs(rank), pairs(chunks - 1 - rank)));
  }
  return most;
}

/// Sets the number of the main stack's layers in a stage.
void set_layers(Bindings& sizes, const StackLayers& layers, const ParallelPlan& plan,
                std::int64_t stage) {
  if (plan.pipeline == 1) return;
  Integer count = 0;
  for (const LayerRange& range : layers_of_stage(layers, plan, stage)) {
    if (range.begin >= layers.encoder) count += range.size();
  }
  sizes.set(Symbol::num_hidden_layers, count);
}

}  // namespace

Bindings rank_sizes(const Bindings& sizes, const ParallelPlan& plan) {
  Bindings rank = sizes;
  for (const Symbol symbol : detail::kDividedSizes) {
    divide(rank, symbol, plan.tensor);
  }
  return rank;
}

Bindings rank_bindings(const Workload& workload, const LayerTraits& traits,
                       const ParallelPlan& plan) {
  LayerTraits rank = traits;
  rank.num_experts /= plan.expert;
  Bindings values = bindings_of(workload, rank);
  const Integer shard_len = Integer{workload.seq_len} / plan.context;
  values.set(Symbol::seq_len, shard_len);
  values.set(Symbol::sequence_shard_len,
             plan.sequence == SequenceParallel::on ? shard_len / plan.tensor : shard_len);
  if (plan.context == 1) return values;
  values.set(Symbol::visible_pairs, ceil_div(*values.get(Symbol::visible_pairs), plan.context));
  values.set(Symbol::windowed_pairs, windowed_pairs_of_rank(workload, traits, plan.context));
  return values;
}

Graph shard(const Graph& graph, const ParallelPlan& plan, Stage stage) {
  switch (stage) {
    case Stage::whole: {
      ParallelPlan unstaged = plan;
      unstaged.pipeline = 1;
      return shard_stage(graph, unstaged, 0);
    }
    case Stage::first:
      return shard_stage(graph, plan, 0);
    case Stage::middle:
      return shard_stage(graph, plan, 1);
    case Stage::last:
      break;
  }
  return shard_stage(graph, plan, plan.pipeline - 1);
}

Graph shard_stage(const Graph& graph, const ParallelPlan& plan, std::int64_t stage) {
  Graph result = detail::stage_of(graph, plan, stage);
  const bool whole_experts = plan.expert_tensor == ExpertTensor::whole && plan.tensor > 1;
  if (whole_experts) result = detail::with_whole_experts(result);
  if (plan.context > 1) result = detail::context_parallel(result);
  if (plan.expert > 1) result = detail::expert_parallel(result, plan.expert);
  if (plan.tensor > 1) result = detail::tensor_parallel(result, plan.tensor, plan.sequence);
  result.sizes = rank_sizes(graph.sizes, plan);
  set_layers(result.sizes, detail::layers_of(graph), plan, stage);
  // h·k → d holds for the whole model only; in_whole_sizes() restores it.
  if (plan.tensor > 1) result.relations.clear();
  return result;
}

Expr in_whole_sizes(const Expr& formula, const Graph& whole) {
  Expr result = formula;
  const Expr fraction = Symbol::tensor_parallel_share;
  for (const Symbol symbol : detail::kDividedSizes) {
    result = result.substitute(symbol, fraction * symbol);
  }
  result = result.substitute(Symbol::sequence_shard_len, fraction * Symbol::seq_len);
  return collapse(result, whole.relations);
}

bool is_divided(const Weight& weight) { return detail::mentions_divided(weight.elements()); }

Graph with_last_token_head(const Graph& graph) {
  Graph result = graph;
  for (Block& block : result.blocks) {
    if (block.path != "head") continue;
    for (Node& node : block.nodes) {
      const auto last = [](const Expr& expr) {
        return expr.substitute(Symbol::seq_len, Integer{1});
      };
      node.op = detail::map_exprs(std::move(node.op), last);
      for (Expr& size : result.tensors[node.output].shape) size = last(size);
    }
  }
  return result;
}

std::vector<CollectiveCall> collectives_of(const Graph& sharded) {
  std::vector<CollectiveCall> calls;
  for (const Block& block : sharded.blocks) {
    for (const Node& node : block.nodes) {
      const auto* op = std::get_if<Collective>(&node.op);
      if (op == nullptr) continue;
      const auto add = [&](CollectiveKind kind, bool backward) {
        if (kind == CollectiveKind::none) return;
        calls.push_back(
            {block.path + "." + node.path, op->group, kind, op->bytes, block.repeat, backward});
      };
      add(op->forward, false);
      add(op->backward, true);
    }
  }
  return calls;
}

double collective_steps(std::int64_t ranks) noexcept {
  if (ranks <= 1) return 0;
  const auto count = static_cast<double>(ranks);
  return std::min(count - 1, 2 * std::ceil(std::log2(count)));
}

double wire_bytes(CollectiveKind kind, double bytes, std::int64_t ranks) noexcept {
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::none:
      return 0;
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n * bytes;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return (n - 1) * bytes;
    case CollectiveKind::all_to_all:
      return (n - 1) / n * bytes;
    case CollectiveKind::send:
      break;
  }
  return ranks > 1 ? bytes : 0;
}

std::string_view name_of(RankGroup group) noexcept {
  switch (group) {
    case RankGroup::tensor:
      return "tensor";
    case RankGroup::context:
      return "context";
    case RankGroup::pipeline:
      return "pipeline";
    case RankGroup::expert:
      return "expert";
    case RankGroup::data:
      break;
  }
  return "data";
}

std::string_view name_of(Stage stage) noexcept {
  switch (stage) {
    case Stage::whole:
      return "whole";
    case Stage::first:
      return "first";
    case Stage::middle:
      return "middle";
    case Stage::last:
      break;
  }
  return "last";
}

}  // namespace headroom
