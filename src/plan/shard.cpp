#include "headroom/shard.h"

#include <algorithm>

#include "op_exprs.h"
#include "pipeline.h"
#include "tensor_parallel.h"

namespace headroom {
namespace {

Integer rounded_up(Integer value, Integer divisor) { return (value + divisor - 1) / divisor; }

void divide(Bindings& sizes, Symbol symbol, Integer degree) {
  if (const auto value = sizes.get(symbol)) sizes.set(symbol, rounded_up(*value, degree));
}

}  // namespace

Bindings rank_sizes(const Bindings& sizes, const ParallelPlan& plan, Stage stage) {
  Bindings rank = sizes;
  for (const Symbol symbol : detail::kDividedSizes) {
    divide(rank, symbol, plan.tensor);
  }
  if (const auto layers = sizes.get(Symbol::num_hidden_layers); layers && stage != Stage::whole) {
    rank.set(Symbol::num_hidden_layers, layers_of_stage(static_cast<std::int64_t>(*layers), plan,
                                                        detail::place_of(stage, plan)));
  }
  return rank;
}

Bindings rank_bindings(const Workload& workload, const LayerTraits& traits,
                       const ParallelPlan& plan) {
  LayerTraits rank = traits;
  rank.num_experts /= plan.expert;
  Bindings values = bindings_of(workload, rank);
  const Integer share = Integer{workload.seq_len} / plan.context;
  values.set(Symbol::seq_len, share);
  values.set(Symbol::sequence_shard_len,
             plan.sequence == SequenceParallel::on ? share / plan.tensor : share);
  for (const Symbol pairs : {Symbol::visible_pairs, Symbol::windowed_pairs}) {
    values.set(pairs, rounded_up(*values.get(pairs), plan.context));
  }
  return values;
}

Graph shard(const Graph& graph, const ParallelPlan& plan, Stage stage) {
  Graph result = detail::stage_of(graph, stage, plan);
  if (plan.context > 1) result = detail::context_parallel(result);
  if (plan.expert > 1) result = detail::expert_parallel(result, plan.expert);
  if (plan.tensor > 1) result = detail::tensor_parallel(result, plan.sequence);
  result.sizes = rank_sizes(graph.sizes, plan, stage);
  // h·k → d holds for the whole model only; in_whole_sizes() leads back to it.
  if (plan.tensor > 1) result.relations.clear();
  return result;
}

Expr in_whole_sizes(const Expr& formula, const Graph& whole) {
  Expr result = formula;
  const Expr share = Symbol::tensor_parallel_share;
  for (const Symbol symbol : detail::kDividedSizes) {
    result = result.substitute(symbol, share * symbol);
  }
  result = result.substitute(Symbol::sequence_shard_len, share * Symbol::seq_len);
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

std::vector<Exchange> exchanges_of(const Graph& sharded) {
  std::vector<Exchange> exchanges;
  for (const Block& block : sharded.blocks) {
    for (const Node& node : block.nodes) {
      const auto* op = std::get_if<Collective>(&node.op);
      if (op == nullptr) continue;
      const auto add = [&](CollectiveKind kind, bool backward) {
        if (kind == CollectiveKind::none) return;
        exchanges.push_back(
            {block.path + "." + node.path, op->group, kind, op->bytes, block.repeat, backward});
      };
      add(op->forward, false);
      add(op->backward, true);
    }
  }
  return exchanges;
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

std::string_view name_of(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::none:
      return "none";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::send:
      break;
  }
  return "send";
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
