#include "rank_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "attention_ops.h"
#include "collective_time.h"
#include "gemm_tiles.h"
#include "graph_collectives.h"
#include "graph_passes.h"
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

/// Average bytes of an element of the whole model's weight; empty without stored bytes.
std::optional<double> stored_bytes_per_element(const Graph& whole, WeightId id) {
  if (id >= whole.weights.size() || !whole.weights[id].stored_bytes) return std::nullopt;
  const Weight& weight = whole.weights[id];
  const Integer elements = (weight.repeat * weight.elements()).evaluate(whole.sizes);
  if (elements == 0) return std::nullopt;
  return static_cast<double>(*weight.stored_bytes) / static_cast<double>(elements);
}

/// A rank's sizes vary with the plan, so its weights' bytes stay a formula.
Graph without_stored_bytes(Graph graph) {
  for (Weight& weight : graph.weights) {
    weight.stored_bytes.reset();
    weight.stored_bytes_of_copy.clear();
  }
  return graph;
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

/// Paths of the nodes that save nothing, because they have no backward pass.
std::set<std::string> paths_without_backward(const Graph& graph) {
  std::set<std::string> paths;
  if (trains_tower(graph)) return paths;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (in_tower(node)) paths.insert(block.path + "." + node.path);
    }
  }
  return paths;
}

/// Elements of a GEMM's weights in all layers.
struct GemmWeights {
  Expr all;
  Expr trained;
};

GemmWeights gemm_weights(const Graph& whole, const Node& node, const NodeAnalysis& analysis) {
  GemmWeights weights;
  const OpKind kind = kind_of(node.op);
  if (kind != OpKind::linear && kind != OpKind::expert_linear) return weights;
  for (const WeightRead& read : analysis.weights_read) {
    weights.all += read.elements;
    const bool frozen = read.weight < whole.weights.size() &&
                        whole.weights[read.weight].training == Training::frozen;
    if (!frozen) weights.trained += read.elements;
  }
  return weights;
}

/// Adapters compute in the activations' type, whatever the type of the weights beside them.
bool is_of_adapter(const Graph& whole, const NodeAnalysis& analysis) {
  return std::ranges::any_of(analysis.weights_read, [&](const WeightRead& read) {
    return read.weight < whole.weights.size() && whole.weights[read.weight].held_adapters > 0;
  });
}

/// Seconds of some operators together.
PassSeconds seconds_of(const std::vector<std::size_t>& operators,
                       const std::vector<OperatorSeconds>& seconds) {
  PassSeconds sum;
  for (const std::size_t one : operators) {
    sum.forward_s += seconds.at(one).forward_s;
    sum.backward_s += seconds.at(one).backward_s;
  }
  return sum;
}

}  // namespace

SectionCosts& section_of(RankCosts& costs, const Section& section) {
  if (section.kind == Section::Kind::layers) return costs.layers.at(section.layer_kind);
  return costs.outside.at(static_cast<std::size_t>(section.kind));
}

RankProgram::RankProgram(const Graph& whole, const Structure& structure, Kernels kernels)
    : constants_(constants_of(whole.sizes)),
      trains_(whole.options.phase == Phase::train),
      expert_parallel_(structure.experts > 1) {
  // All degrees above one give the same operators.
  ParallelPlan plan;
  plan.tensor = structure.tensor ? 2 : 1;
  plan.sequence = structure.sequence;
  plan.context = structure.context ? 2 : 1;
  plan.expert = structure.experts;
  plan.expert_tensor = structure.expert_tensor;
  const Graph graph = shard(without_stored_bytes(whole), plan);
  AnalysisOptions options;
  options.kernels = kernels;
  const Analysis analysis = analyze(graph, options);
  compile_nodes(graph, analysis, whole);
  compile_saved(graph, analysis);
  compile_memory(graph, analysis);
  compile_head(graph, analysis, whole);
  if (graph.options.phase == Phase::train) compile_gradients(graph);
}

Integer RankProgram::CompiledBytes::evaluate(const SymbolValues& values,
                                             const RankSpeed& speed) const {
  const Integer mean = bytes.evaluate(values);
  if (!on_exchanged_tokens || speed.expert_load == 1) return mean;
  return static_cast<Integer>(std::ceil(speed.expert_load * static_cast<double>(mean)));
}

Integer RankProgram::CompiledSaved::evaluate(const SymbolValues& values_of,
                                             const RankSpeed& speed) const {
  const auto in_float8 = [&] {
    return speed.saved_inputs->bytes(values.evaluate(values_of, speed));
  };
  const Integer in_their_type = bytes.evaluate(values_of, speed);
  if (!speed.saved_inputs) return in_their_type;
  switch (readers) {
    case SavedReaders::others:
      return in_their_type;
    case SavedReaders::layer_gemms:
      return in_float8();
    case SavedReaders::gemms_and_more:
      break;
  }
  const bool copied = speed.saved_inputs->shared == SavedInputs::Shared::copied;
  return copied ? checked_add(in_their_type, in_float8()) : in_their_type;
}

RankProgram::CompiledNode RankProgram::compiled_node(const Section& section, const Block& block,
                                                     const Node& node, const NodeAnalysis& analysis,
                                                     const Graph& whole) const {
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  const Cost& forward = analysis.cost.forward;
  Expr bytes = forward.bytes_read + forward.bytes_written;
  std::vector<CompiledRead> reads;
  for (const WeightRead& read : analysis.weights_read) {
    const auto bytes_per_element = stored_bytes_per_element(whole, read.weight);
    if (!bytes_per_element) continue;
    bytes -= read.elements * Symbol::weight_bytes;
    reads.push_back(
        {compiled(read.elements), *bytes_per_element, whole.weights.at(read.weight).held_adapters});
  }
  std::optional<CompiledGemm> gemm;
  // Engines have kernels of their own for adapters, whose ranks are narrower than a tile.
  const bool is_tiled = !trains_ && !is_of_adapter(whole, analysis);
  if (const auto sizes = is_tiled ? gemm_of(node.op) : std::nullopt) {
    gemm = CompiledGemm{compiled(sizes->rows), compiled(sizes->in_features),
                        compiled(sizes->out_features), compiled(sizes->count)};
  }
  const bool has_backward = !in_tower(node) || trains_tower(whole);
  const GemmWeights weights = trains_ ? gemm_weights(whole, node, analysis) : GemmWeights{};
  std::optional<CompiledHeads> heads;
  if (const auto* attention = std::get_if<FusedAttention>(&node.op);
      attention != nullptr && whole.options.phase == Phase::decode) {
    const AttentionShape& shape = attention->shape;
    const Expr elements = shape.key_rows() * (shape.head_dim + shape.value_head_dim);
    heads = CompiledHeads{compiled(shape.batch), compiled(shape.heads), compiled(shape.kv_heads),
                          compiled(elements)};
  }
  return {section,
          kind_of(node.op),
          layer_part(node),
          is_layer_gemm(block, node) && !is_of_adapter(whole, analysis),
          !analysis.weights_read.empty(),
          attends(node.op),
          false,
          compiled(block.repeat),
          compiled(forward.matrix_flops),
          compiled(bytes),
          compiled(has_backward ? analysis.cost.backward.matrix_flops : Expr()),
          std::move(gemm),
          std::move(heads),
          std::move(reads),
          compiled(weights.all),
          compiled(weights.trained),
          compiled(block.repeat * permuted_bytes(node)),
          permutations_of(expert_parallel_)};
}

void RankProgram::compile_nodes(const Graph& graph, const Analysis& analysis, const Graph& whole) {
  const SectionMap sections(graph);
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  const std::set<std::string> exchanged = exchanged_paths(graph);
  const auto is_exchanged = [&](const Block& block, const Node& node) {
    return exchanged.contains(block.path + "." + node.path);
  };
  Expr logits;
  std::size_t next = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    std::map<const Node*, std::size_t> places;
    const std::size_t first_collective = collectives_.size();
    std::vector<const Node*> collectives;
    for (const Node& node : block.nodes) {
      const Section section = sections.of(i, node);
      const NodeAnalysis& cost = analysis.nodes.at(next++);
      if (const auto* op = std::get_if<Collective>(&node.op)) {
        compile_collective(section, *op, block.repeat, part_of_collective(block, node));
        if (is_exchanged(block, node)) collectives_.back().on_exchanged_tokens = true;
        collectives.push_back(&node);
        continue;
      }
      places.emplace(&node, nodes_.size());
      nodes_.push_back(compiled_node(section, block, node, cost, whole));
      nodes_.back().on_exchanged_tokens = is_exchanged(block, node);
      if (kind_of(node.op) == OpKind::loss) {
        logits += graph.tensors[node.inputs.front()].elements() * Symbol::activation_bytes;
      }
    }
    for (std::size_t j = 0; block.is_layers() && j < collectives.size(); ++j) {
      if (std::get<Collective>(collectives[j]->op).group != RankGroup::tensor) continue;
      for (const auto& [node, place] : places) {
        if (is_beside(*node, *collectives[j])) {
          collectives_[first_collective + j].gemms.push_back(place);
        }
      }
    }
  }
  logits_ = compiled(logits);
  hidden_ = compiled(hidden_bytes(graph));
  key_choice_ = compiled(key_choice_bytes());
}

void RankProgram::compile_collective(const Section& section, const Collective& op,
                                     const Expr& repeat, LayerPart part) {
  collectives_.push_back({section, op.group, op.forward, op.backward, op.dispatch,
                          CompiledExpr(op.bytes, constants_), CompiledExpr(repeat, constants_),
                          op.routing, part, op.routing.has_value()});
}

/// The gradient of the last GEMM before the loss.
void RankProgram::compile_head(const Graph& graph, const Analysis& analysis, const Graph& whole) {
  Expr elements;
  std::size_t next = 0;
  for (const Block& block : graph.blocks) {
    Expr last;
    for (const Node& node : block.nodes) {
      const NodeAnalysis& cost = analysis.nodes.at(next++);
      const Expr trained = gemm_weights(whole, node, cost).trained;
      if (kind_of(node.op) == OpKind::linear) last = trained;
      if (kind_of(node.op) == OpKind::loss) elements += last;
    }
  }
  head_weights_ = CompiledExpr(elements, constants_);
}

void RankProgram::compile_saved(const Graph& graph, const Analysis& analysis) {
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  const std::map<std::string, Section> sections = sections_by_path(graph);
  const std::set<std::string> without_backward = paths_without_backward(graph);
  const std::set<std::string> exchanged = exchanged_paths(graph);
  for (const SavedTensor& saved : analysis.saved) {
    if (without_backward.contains(saved.path)) continue;
    Section section = sections.at(saved.path);
    const bool all_layers =
        section.kind == Section::Kind::layers && saved.kept == KeptUnder::every_recompute;
    // Rotary tables are equal for all sequences; an encoder's output comes with each micro-batch.
    const bool table = all_layers && saved.bytes.degree(Symbol::batch_size) == 0;
    if (all_layers && !table) section = {Section::Kind::main_every, 0};
    const bool logits =
        section.kind == Section::Kind::main_last && saved.bytes.degree(Symbol::vocab_size) > 0;
    const bool on_exchanged_tokens = exchanged.contains(saved.path);
    const Expr bytes = saved.repeat * saved.bytes;
    const Expr values = bytes.substitute(Symbol::activation_bytes, Integer{1});
    saved_.push_back({section,
                      saved.part,
                      table,
                      logits,
                      saved.readers,
                      {compiled(bytes), on_exchanged_tokens},
                      {compiled(values), on_exchanged_tokens}});
  }
}

void RankProgram::compile_gradients(const Graph& graph) {
  const SectionMap sections(graph);
  const std::set<std::string> exchanged = exchanged_paths(graph);
  std::vector<std::tuple<std::size_t, Expr, bool>> seen;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    if (!graph.blocks[i].is_layers()) continue;
    for (const Node& node : graph.blocks[i].nodes) {
      const Section section = sections.of(i, node);
      Expr elements = graph.tensors[node.output].elements();
      for (const TensorId input : node.inputs) elements += graph.tensors[input].elements();
      const Expr bytes = (elements * Symbol::activation_bytes).substitute(constants_);
      const bool of_exchanged = exchanged.contains(graph.blocks[i].path + "." + node.path);
      const std::tuple one(section.layer_kind, bytes, of_exchanged);
      if (std::ranges::find(seen, one) != seen.end()) continue;
      seen.push_back(one);
      gradients_.push_back({section, {CompiledExpr(bytes, constants_), of_exchanged}});
    }
  }
}

void RankProgram::compile_memory(const Graph& graph, const Analysis& analysis) {
  const auto compiled = [&](const Expr& expr) { return CompiledExpr(expr, constants_); };
  const std::set<std::string> exchanged = exchanged_paths(graph);
  std::vector<std::pair<Expr, bool>> seen;
  for (const LiveBytes& live : analysis.live) {
    const std::pair one(live.bytes.substitute(constants_), exchanged.contains(live.path));
    if (std::ranges::find(seen, one) != seen.end()) continue;
    seen.push_back(one);
    live_.push_back({compiled(one.first), one.second});
  }
  const std::vector<CacheTensor> caches = cache_tensors(graph);
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    const Expr input = graph.tensors[block.carried_in].elements() * Symbol::activation_bytes;
    std::vector<Expr> cache_bytes(static_cast<std::size_t>(block.layers_per_run));
    for (const CacheTensor& cache : caches) {
      if (cache.block != &block) continue;
      const Tensor& tensor = graph.tensors[cache.tensor];
      cache_bytes[static_cast<std::size_t>(cache.node->layer)] +=
          block.repeat * tensor.elements() * bytes_of(tensor.type);
    }
    for (const Expr& bytes : cache_bytes) {
      layer_inputs_.push_back(compiled(block.repeat * input));
      kv_cache_.push_back(compiled(bytes));
    }
  }
}

RankCosts RankProgram::costs(const SymbolValues& values, const RankSpeed& speed,
                             std::int64_t adapters) const {
  RankCosts costs;
  costs.layers.resize(layer_inputs_.size());
  std::vector<OperatorSeconds> seconds;
  seconds.reserve(nodes_.size());
  for (const CompiledNode& node : nodes_) {
    seconds.push_back(trains_ ? node.training_seconds(values, speed)
                              : node.serving_seconds(values, speed, adapters));
    node.add_to(section_of(costs, node.section), seconds.back(), values);
  }
  add_communication(values, speed, seconds, costs);
  for (const CompiledSaved& saved : saved_) {
    SectionCosts& section = section_of(costs, saved.section);
    const Integer bytes = saved.evaluate(values, speed);
    (saved.table ? costs.tables : section.saved) += bytes;
    if (saved.logits) costs.saved_logits += bytes;
    section.saved_parts.at(static_cast<std::size_t>(saved.part)) += bytes;
  }
  for (const CompiledGradients& gradients : gradients_) {
    Integer& largest = section_of(costs, gradients.section).largest_gradients;
    largest = std::max(largest, gradients.bytes.evaluate(values, speed));
  }
  for (const CompiledBytes& live : live_) {
    costs.peak = std::max(costs.peak, live.evaluate(values, speed));
  }
  for (std::size_t i = 0; i < costs.layers.size(); ++i) {
    costs.layers[i].layer_inputs = layer_inputs_[i].evaluate(values);
    costs.kv_cache.push_back(kv_cache_[i].evaluate(values));
  }
  costs.logits = logits_->evaluate(values);
  if (trains_) costs.head_weights = head_weights_->evaluate(values);
  if (hidden_) costs.hidden = hidden_->evaluate(values);
  if (key_choice_) costs.key_choice = key_choice_->evaluate(values);
  return costs;
}

void RankProgram::add_communication(const SymbolValues& values, const RankSpeed& speed,
                                    const std::vector<OperatorSeconds>& seconds,
                                    RankCosts& costs) const {
  for (const CompiledCollective& collective : collectives_) {
    SectionCosts& section = section_of(costs, collective.section);
    const double repeat = as_double(collective.repeat, values);
    const auto seconds_in = [&](Dispatch pass) {
      return repeat * collective_seconds(collective.message_in(pass, values, speed), speed);
    };
    const double forward = seconds_in(Dispatch::forward);
    const double backward = seconds_in(Dispatch::backward);
    const auto part = static_cast<std::size_t>(collective.part);
    section.forward_communication_s += forward;
    section.backward_communication_s += backward;
    section.part_communication_s.at(part) += forward;
    const PassSeconds gemms = seconds_of(collective.gemms, seconds);
    const double hidden =
        kHiddenShare * hidden_by_gemms(forward, gemms.forward_s, speed.tensor_ranks);
    section.forward_hidden_s += hidden;
    section.part_hidden_s.at(part) += hidden;
    // The gradients of the input or those of the weights: half of the backward pass.
    section.backward_hidden_s +=
        kHiddenShare * hidden_by_gemms(backward, gemms.backward_s / 2, speed.tensor_ranks);
    if (collective.dispatch == Dispatch::forward) section.dispatch_s += forward;
    if (collective.dispatch == Dispatch::backward) section.combine_s += forward;
  }
}

CollectiveMessage RankProgram::CompiledCollective::message_in(Dispatch pass,
                                                              const SymbolValues& values,
                                                              const RankSpeed& speed) const {
  const double share = dispatch == pass ? speed.dispatch_share : 1;
  const double load = on_exchanged_tokens ? speed.expert_load : 1;
  return {group, pass == Dispatch::backward ? backward : forward,
          load * share * as_double(bytes, values), routing};
}

std::vector<RankProgram::RepeatedCollective> RankProgram::collectives(
    const SymbolValues& values, const RankSpeed& speed) const {
  std::vector<RepeatedCollective> result;
  for (const CompiledCollective& collective : collectives_) {
    const double repeat = as_double(collective.repeat, values);
    const auto add = [&](Dispatch pass) {
      const CollectiveMessage message = collective.message_in(pass, values, speed);
      if (message.kind == CollectiveKind::none) return;
      result.push_back(
          {collective.section, collective.part, pass == Dispatch::backward, repeat, message});
    };
    add(Dispatch::forward);
    if (trains_) add(Dispatch::backward);
  }
  return result;
}

}  // namespace headroom::detail
