#include <algorithm>
#include <array>
#include <set>

#include "headroom/analysis.h"
#include "liveness.h"
#include "op_cost.h"
#include "saved_tensors.h"

namespace headroom {
namespace {

using detail::ElementwiseFlops;
using detail::MatrixFlops;
using detail::Traffic;

NodeCost scaled(const NodeCost& cost, const Expr& factor) {
  const auto scale = [&](const Cost& one) {
    return Cost{factor * one.matrix_flops, factor * one.elementwise_flops, factor * one.bytes_read,
                factor * one.bytes_written};
  };
  return {scale(cost.forward), scale(cost.backward)};
}

NodeCost& operator+=(NodeCost& cost, const NodeCost& other) {
  cost.forward += other.forward;
  cost.backward += other.backward;
  return cost;
}

/// Each term's share of the weight's stored bytes, rounded up: its coefficient counts elements per
/// layer, token or expert.
Expr stored_share(const Expr& elements, const Graph& graph, const Weight& weight) {
  const Integer all = (weight.repeat * weight.elements()).evaluate(graph.sizes);
  if (all == 0) return {};
  const Expr read = elements.substitute(graph.sizes);
  std::vector<Term> terms(read.terms().begin(), read.terms().end());
  for (Term& term : terms) {
    term.coefficient = ceil_div(checked_multiply(*weight.stored_bytes, term.coefficient), all);
  }
  return Expr::from_terms(std::move(terms));
}

Expr bytes_read_of(const WeightRead& read, const Graph& graph) {
  const Weight& weight = graph.weights[read.weight];
  if (weight.stored_bytes) return stored_share(read.elements, graph, weight);
  return read.elements * Symbol::weight_bytes;
}

/// True for a product of activations and weights, of which a backward pass computes both gradients.
bool multiplies_weights(const Op& op) {
  return std::holds_alternative<Linear>(op) || std::holds_alternative<ExpertLinear>(op) ||
         std::holds_alternative<HeadLinear>(op) || std::holds_alternative<GroupedLinear>(op);
}

NodeCost cost_of(const Graph& graph, const Node& node, const Traffic& bytes, Convention convention,
                 const Expr& owned_parameters) {
  const MatrixFlops matrix = detail::matrix_flops(node.op, convention, owned_parameters);
  const ElementwiseFlops elementwise = detail::elementwise_flops(node.op);
  NodeCost cost;
  cost.forward = {matrix.forward, elementwise.forward, bytes.read, bytes.written};
  if (graph.options.phase == Phase::train) {
    // A frozen layer computes only the gradient of its input.
    const bool frozen = multiplies_weights(node.op) && !is_trained(graph, node);
    cost.backward = {frozen ? matrix.forward : matrix.backward, elementwise.backward, {}, {}};
  }
  return cost;
}

bool runs_again(const Block& block, const Node& node, Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return false;
    case Recompute::selective:
      return in_attention_core(node);
    case Recompute::full:
      break;
  }
  return block.is_layers();
}

ComponentAnalysis& component_row(std::vector<ComponentAnalysis>& rows, const Component& component) {
  const auto found = std::ranges::find(rows, component, &ComponentAnalysis::component);
  return found != rows.end() ? *found : rows.emplace_back(ComponentAnalysis{component, {}, {}, {}});
}

/// "[0:24:2]" of the path of a node in a stack of different layers, else empty.
std::string layers_in(const std::string& path) {
  const std::size_t bracket = path.find('[');
  return bracket == std::string::npos ? std::string() : path.substr(bracket);
}

std::vector<CacheEntry> cache_entries(const Graph& graph) {
  std::vector<CacheEntry> entries;
  for (const CacheTensor& cache : cache_tensors(graph)) {
    const Tensor& tensor = graph.tensors[cache.tensor];
    entries.push_back({cache.block->path + "." + tensor.name + layers_in(cache.node->path),
                       tensor.elements() * bytes_of(tensor.type), cache.block->repeat});
  }
  return entries;
}

Expr& role_total(ParameterCount& count, WeightRole role) {
  switch (role) {
    case WeightRole::embedding:
      return count.embedding;
    case WeightRole::relative_position_bias:
      return count.relative_position_bias;
    case WeightRole::attention:
      return count.attention;
    case WeightRole::recurrent:
      return count.recurrent;
    case WeightRole::convolution:
      return count.convolution;
    case WeightRole::mlp:
      return count.mlp;
    case WeightRole::norm:
      return count.norm;
    case WeightRole::head:
      return count.head;
    case WeightRole::projector:
      break;
  }
  return count.projector;
}

Expr& part_total(PartCount& count, ModelPart part) {
  switch (part) {
    case ModelPart::text:
      return count.text;
    case ModelPart::vision:
      return count.vision;
    case ModelPart::audio:
      return count.audio;
    case ModelPart::adapter:
      return count.adapter;
    case ModelPart::projector:
      break;
  }
  return count.projector;
}

void analyze_nodes(const Graph& graph, const AnalysisOptions& options, Analysis& analysis) {
  std::set<WeightId> owned;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      Expr parameters;
      Expr of_all_layers;
      Expr bytes_owned;
      for (const WeightId id : node.weights) {
        const Weight& weight = graph.weights[id];
        if (!owned.insert(id).second) continue;
        bytes_owned += weight_bytes(weight);
        if (weight.kind == WeightKind::buffer) continue;
        parameters += weight.elements();
        of_all_layers += weight.repeat * weight.elements();
      }
      Traffic bytes = detail::traffic(graph, node);
      const NodeCost once = cost_of(graph, node, bytes, options.convention, parameters);
      NodeCost all = scaled(once, block.repeat);
      for (WeightRead& read : bytes.weights) {
        read.elements = block.repeat * read.elements;
        all.forward.bytes_read += bytes_read_of(read, graph);
      }
      analysis.nodes.push_back({block.path + "." + node.path, node.component, of_all_layers,
                                bytes_owned, all, std::move(bytes.weights)});
      component_row(analysis.components, node.component).cost += all;
      analysis.total += all;
      if (graph.options.phase == Phase::train && runs_again(block, node, options.recompute)) {
        analysis.recompute += all.forward;
      }
    }
  }
}

/// True if the bytes grow with these keys alone. The state of a compressor, tokens beyond its last
/// whole window, depends on two kinds and does not grow.
bool grows_with(const Expr& bytes, Symbol keys) {
  constexpr std::array kKeys{Symbol::visible_keys, Symbol::windowed_keys, Symbol::compressed_keys,
                             Symbol::heavily_compressed_keys};
  return std::ranges::all_of(
      kKeys, [&](Symbol kind) { return (bytes.degree(kind) > 0) == (kind == keys); });
}

/// Bytes of one sequence in the caches that are linear in `keys`, at one key.
Expr bytes_of_one_key(const Analysis& analysis, Symbol keys) {
  Expr bytes;
  for (const CacheEntry& entry : analysis.kv_cache) {
    if (!grows_with(entry.bytes, keys)) continue;
    bytes += entry.repeat *
             entry.bytes.substitute(keys, Integer{1}).substitute(Symbol::batch_size, Integer{1});
  }
  return bytes;
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  matrix_flops += other.matrix_flops;
  elementwise_flops += other.elementwise_flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

namespace {

bool is_routed(Part part) { return part == Part::mlp_experts_up || part == Part::mlp_experts_down; }

}  // namespace

ParameterCount count_parameters(const Graph& graph) {
  ParameterCount count;
  for (const Weight& weight : graph.weights) {
    if (weight.kind == WeightKind::buffer) continue;
    const Expr elements = weight.repeat * weight.elements();
    role_total(count, weight.role) += elements;
    part_total(count.parts, weight.model_part) += elements;
    count.total += elements;
    if (weight.readers == Readers::image_tokens) continue;
    if (!is_routed(weight.component.part)) {
      count.active += elements;
      continue;
    }
    // Each token is routed to some of a layer's experts.
    count.routed_experts += elements;
    count.active += elements.substitute(Symbol::num_experts, Symbol::num_experts_per_tok);
  }
  return count;
}

Expr weight_bytes(const Weight& weight) {
  if (weight.stored_bytes) return *weight.stored_bytes;
  if (weight.kind == WeightKind::buffer) return {};
  return weight.repeat * weight.elements() * Symbol::weight_bytes;
}

Analysis analyze(const Graph& graph, const AnalysisOptions& options) {
  Analysis analysis;
  analysis.convention = options.convention;
  analysis.parameters = count_parameters(graph);
  analyze_nodes(graph, options, analysis);
  // Includes weights of parts that this phase does not run, such as the encoder in decode.
  for (const Weight& weight : graph.weights) {
    const Expr bytes = weight_bytes(weight);
    ComponentAnalysis& row = component_row(analysis.components, weight.component);
    row.weight_bytes += bytes;
    analysis.weight_bytes += bytes;
    if (weight.kind == WeightKind::parameter) row.parameters += weight.repeat * weight.elements();
  }
  analysis.live = detail::live_bytes(graph);
  analysis.kv_cache = cache_entries(graph);
  if (graph.options.phase == Phase::train) {
    analysis.saved = detail::saved_tensors(graph, options.kernels);
    analysis.layer_inputs = detail::layer_input_bytes(graph);
  }
  return analysis;
}

bool stays_saved(const SavedTensor& saved, Recompute recompute) noexcept {
  switch (recompute) {
    case Recompute::none:
      return true;
    case Recompute::selective:
      return saved.kept != KeptUnder::none;
    case Recompute::full:
      break;
  }
  return saved.kept == KeptUnder::every_recompute;
}

Expr saved_bytes(const Analysis& analysis, Recompute recompute) {
  Expr bytes = recompute == Recompute::full ? analysis.layer_inputs : Expr();
  for (const SavedTensor& saved : analysis.saved) {
    if (stays_saved(saved, recompute)) bytes += saved.repeat * saved.bytes;
  }
  return bytes;
}

Expr kv_cache_bytes(const Analysis& analysis) {
  Expr bytes;
  for (const CacheEntry& entry : analysis.kv_cache) bytes += entry.repeat * entry.bytes;
  return bytes;
}

Expr kv_cache_bytes_per_token(const Analysis& analysis, WindowFill fill) {
  Expr bytes = bytes_of_one_key(analysis, Symbol::visible_keys);
  if (fill == WindowFill::filling) bytes += bytes_of_one_key(analysis, Symbol::windowed_keys);
  return bytes;
}

Expr compressed_key_bytes(const Analysis& analysis, Symbol keys) {
  return bytes_of_one_key(analysis, keys);
}

}  // namespace headroom
