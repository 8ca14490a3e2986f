#include "rank_program.h"

#include <algorithm>
#include <map>

#include "op_exprs.h"
#include "op_kind.h"

namespace headroom::detail {
namespace {

/// Values of the sizes that no plan divides.
Bindings constants_of(const Bindings& sizes) {
  Bindings constants;
  for (const SymbolInfo& symbol : symbols()) {
    const bool varies = std::ranges::find(kDividedSizes, symbol.symbol) != kDividedSizes.end();
    const auto value = sizes.get(symbol.symbol);
    if (value && !varies) constants.set(symbol.symbol, *value);
  }
  return constants;
}

/// Elements of a weight's copies that a GEMM reads.
Expr elements_read(const Weight& weight, OpKind kind) {
  if (weight.shape.size() < 2) return {};
  if (kind == OpKind::linear) return weight.elements();
  // Only the experts that some token selects are read.
  const bool routed = kind == OpKind::expert_linear;
  return routed ? Expr(Symbol::experts_read) * weight.shape[1] * weight.shape.back() : Expr();
}

Expr matrix_elements(const Graph& graph, const Node& node) {
  Expr elements;
  for (const WeightId id : node.weights) {
    elements += elements_read(graph.weights[id], kind_of(node.op));
  }
  return elements;
}

/// Sections by the path of their nodes.
std::map<std::string, Section> sections_by_path(const Graph& graph) {
  const SectionMap sections(graph);
  std::map<std::string, Section> by_path;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    for (const Node& node : graph.blocks[i].nodes) {
      by_path.emplace(graph.blocks[i].path + "." + node.path, sections.of(i, node));
    }
  }
  return by_path;
}

/// Bytes of the hidden states that a stage sends on: the last ones of each stack.
Expr hidden_bytes(const Graph& graph) {
  Expr encoder;
  Expr main;
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    (in_encoder(block) ? encoder : main) =
        graph.tensors[block.carried_out].elements() * Symbol::activation_bytes;
  }
  return encoder + main;
}

double as_double(const CompiledExpr& expr, const SymbolValues& values) {
  return static_cast<double>(expr.evaluate(values));
}

struct Link {
  std::int64_t ranks;
  double bytes_per_s;
};

Link link_of(RankGroup group, const RankSpeed& speed) {
  switch (group) {
    case RankGroup::context:
      return {speed.context_ranks, speed.context_bytes_per_s};
    case RankGroup::expert:
      return {speed.expert_ranks, speed.expert_bytes_per_s};
    case RankGroup::tensor:
    case RankGroup::pipeline:
    case RankGroup::data:
      break;
  }
  return {speed.tensor_ranks, speed.tensor_bytes_per_s};
}

}  // namespace

double collective_wire_bytes(CollectiveKind kind, double bytes, RankGroup group,
                             const RankSpeed& speed) {
  return wire_bytes(kind, bytes, link_of(group, speed).ranks);
}

double collective_seconds(CollectiveKind kind, double bytes, RankGroup group,
                          const RankSpeed& speed) {
  if (kind == CollectiveKind::none) return 0;
  return collective_wire_bytes(kind, bytes, group, speed) / link_of(group, speed).bytes_per_s +
         speed.collective_latency_s;
}

SectionCosts& section_of(RankCosts& costs, const Section& section) {
  if (section.kind == Section::Kind::layers) return costs.layers.at(section.layer_kind);
  return costs.outside.at(static_cast<std::size_t>(section.kind));
}

RankProgram::RankProgram(const Graph& whole, const Structure& structure, Kernels kernels)
    : constants_(constants_of(whole.sizes)) {
  // All degrees above one give the same operators.
  ParallelPlan plan;
  plan.tensor = structure.tensor ? 2 : 1;
  plan.sequence = structure.sequence;
  plan.context = structure.context ? 2 : 1;
  plan.expert = structure.experts;
  const Graph graph = shard(whole, plan);
  AnalysisOptions options;
  options.kernels = kernels;
  const Analysis analysis = analyze(graph, options);
  compile_nodes(graph, analysis);
  compile_saved(graph, analysis);
  compile_memory(graph, analysis);
}

void RankProgram::compile_nodes(const Graph& graph, const Analysis& analysis) {
  const SectionMap sections(graph);
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  Expr logits;
  std::size_t next = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    for (const Node& node : block.nodes) {
      const Section section = sections.of(i, node);
      const NodeAnalysis& cost = analysis.nodes.at(next++);
      if (const auto* op = std::get_if<Collective>(&node.op)) {
        collectives_.push_back({section, op->group, op->forward, op->backward, compiled(op->bytes),
                                compiled(block.repeat)});
        continue;
      }
      const Cost& forward = cost.cost.forward;
      const bool quantisable = block.is_layers();
      nodes_.push_back(
          {section, in_attention_core(node), compiled(forward.matrix_flops),
           compiled(forward.bytes_read + forward.bytes_written),
           compiled(cost.cost.backward.matrix_flops),
           compiled(quantisable ? block.repeat * matrix_elements(graph, node) : Expr())});
      if (kind_of(node.op) == OpKind::loss) {
        logits += graph.tensors[node.inputs.front()].elements() * Symbol::activation_bytes;
      }
    }
  }
  logits_ = compiled(logits);
  hidden_ = compiled(hidden_bytes(graph));
}

void RankProgram::compile_saved(const Graph& graph, const Analysis& analysis) {
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  const std::map<std::string, Section> sections = sections_by_path(graph);
  for (const SavedTensor& saved : analysis.saved) {
    Section section = sections.at(saved.path);
    const bool all_layers =
        section.kind == Section::Kind::layers && saved.kept == KeptUnder::every_recompute;
    // Rotary tables are equal for all sequences; an encoder's output comes with each micro-batch.
    const bool table = all_layers && saved.bytes.degree(Symbol::batch_size) == 0;
    if (all_layers && !table) section = {Section::Kind::main_every, 0};
    saved_.push_back(
        {section, saved.kept == KeptUnder::none, table, compiled(saved.repeat * saved.bytes)});
  }
}

void RankProgram::compile_memory(const Graph& graph, const Analysis& analysis) {
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  std::vector<Expr> seen;
  for (const LiveBytes& live : analysis.live) {
    const Expr bytes = live.bytes.substitute(constants_);
    if (std::ranges::find(seen, bytes) != seen.end()) continue;
    seen.push_back(bytes);
    live_.push_back(compiled(bytes));
  }
  const std::vector<CacheTensor> caches = cache_tensors(graph);
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    const Expr input = graph.tensors[block.carried_in].elements() * Symbol::activation_bytes;
    std::vector<Expr> cache_bytes(static_cast<std::size_t>(block.layers_per_run));
    for (const CacheTensor& cache : caches) {
      if (cache.block != &block) continue;
      cache_bytes[static_cast<std::size_t>(cache.node->layer)] +=
          block.repeat * graph.tensors[cache.tensor].elements() * Symbol::kv_cache_bytes;
    }
    for (const Expr& bytes : cache_bytes) {
      layer_inputs_.push_back(compiled(block.repeat * input));
      kv_cache_.push_back(compiled(bytes));
    }
  }
}

RankCosts RankProgram::costs(const SymbolValues& values, const RankSpeed& speed) const {
  RankCosts costs;
  costs.layers.resize(layer_inputs_.size());
  for (const CompiledNode& node : nodes_) {
    SectionCosts& section = section_of(costs, node.section);
    const double flops = as_double(node.flops, values);
    const double bytes = as_double(node.bytes, values) -
                         as_double(node.layer_matrices, values) * speed.bytes_saved_per_weight;
    const double backward = as_double(node.backward_flops, values);
    const double forward_s = std::max(flops / speed.flops_per_s, bytes / speed.memory_bytes_per_s);
    section.forward_s += forward_s;
    section.forward_flops += flops;
    if (node.core) section.core_s += forward_s;
    // The backward pass reads and writes gradients as well as activations: twice the forward's
    // bytes.
    section.backward_s +=
        std::max(backward / speed.flops_per_s, 2 * bytes / speed.memory_bytes_per_s);
  }
  add_communication(values, speed, costs);
  for (const CompiledSaved& saved : saved_) {
    SectionCosts& section = section_of(costs, saved.section);
    const Integer bytes = saved.bytes.evaluate(values);
    (saved.table ? costs.tables : section.saved) += bytes;
    if (saved.core) section.saved_core += bytes;
  }
  for (const CompiledExpr& live : live_) costs.peak = std::max(costs.peak, live.evaluate(values));
  for (std::size_t i = 0; i < costs.layers.size(); ++i) {
    costs.layers[i].layer_inputs = layer_inputs_[i].evaluate(values);
    costs.kv_cache.push_back(kv_cache_[i].evaluate(values));
  }
  costs.logits = logits_->evaluate(values);
  if (hidden_) costs.hidden = hidden_->evaluate(values);
  return costs;
}

void RankProgram::add_communication(const SymbolValues& values, const RankSpeed& speed,
                                    RankCosts& costs) const {
  for (const CompiledCollective& collective : collectives_) {
    SectionCosts& section = section_of(costs, collective.section);
    const double bytes = as_double(collective.bytes, values);
    const double repeat = as_double(collective.repeat, values);
    section.forward_communication_s +=
        repeat * collective_seconds(collective.forward, bytes, collective.group, speed);
    section.backward_communication_s +=
        repeat * collective_seconds(collective.backward, bytes, collective.group, speed);
  }
}

std::vector<RankProgram::CollectiveBytes> RankProgram::collectives(
    const SymbolValues& values) const {
  std::vector<CollectiveBytes> result;
  for (const CompiledCollective& collective : collectives_) {
    const double bytes = as_double(collective.bytes, values);
    const double repeat = as_double(collective.repeat, values);
    const auto add = [&](CollectiveKind kind, bool backward) {
      if (kind == CollectiveKind::none) return;
      result.push_back({collective.section, collective.group, kind, backward, repeat, bytes});
    };
    add(collective.forward, false);
    add(collective.backward, true);
  }
  return result;
}

}  // namespace headroom::detail
