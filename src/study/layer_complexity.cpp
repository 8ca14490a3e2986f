#include <algorithm>
#include <utility>

#include "growth.h"
#include "headroom/complexity.h"
#include "leading_share.h"
#include "position_mixing.h"
#include "regimes.h"

namespace headroom {
namespace {

/// Kernels compute in float32.
constexpr Integer kFloatBytes = 4;

Expr in_float32(Expr bytes) {
  for (const Symbol symbol :
       {Symbol::weight_bytes, Symbol::activation_bytes, Symbol::kv_cache_bytes}) {
    bytes = bytes.substitute(symbol, kFloatBytes);
  }
  return bytes;
}

GrowingCost growing(const Expr& cost, const Graph& graph) {
  return {of_one_sequence(cost, graph), growth_of(cost, graph), in_length(cost, graph)};
}

/// Returns whether `a` exceeds `b` for long sequences.
bool larger_asymptotically(const LengthFunction& a, const LengthFunction& b) {
  const LengthPolynomial difference = a.pieces.back().polynomial - b.pieces.back().polynomial;
  return !difference.coefficients().empty() && difference.coefficients().back() > 0;
}

/// Adds the live set that is largest for long sequences.
void add_peak(LayerComplexity& layer) {
  std::optional<LengthFunction> largest;
  Expr bytes;
  for (const LiveBytes& live : layer.analysis.live) {
    const LengthFunction here = in_length(in_float32(live.bytes), layer.graph);
    if (largest && !larger_asymptotically(here, *largest)) continue;
    largest = here;
    layer.peak_path = live.path;
    bytes = in_float32(live.bytes);
  }
  if (largest) layer.activation_bytes = growing(bytes, layer.graph);
}

/// Bytes of the decode state in float32.
struct DecodeState {
  Expr per_token;  ///< of the decoder, with all windows full
  Expr per_encoder_token;
  Expr fixed;
};

DecodeState decode_state(const Analysis& analysis) {
  DecodeState state;
  state.per_token = in_float32(kv_cache_bytes_per_token(analysis, WindowFill::full));
  for (const CacheEntry& entry : analysis.kv_cache) {
    const Expr bytes = entry.repeat * in_float32(entry.bytes);
    if (bytes.degree(Symbol::enc_seq_len) > 0) {
      state.per_encoder_token += bytes.substitute(Symbol::enc_seq_len, Integer{1});
    } else if (bytes.degree(Symbol::visible_keys) == 0) {
      state.fixed += bytes;
    }
  }
  return state;
}

void add_state(LayerComplexity& layer) {
  if (layer.analysis.kv_cache.empty()) return;
  Bindings values = layer.graph.sizes;
  values.set(Symbol::batch_size, 1);
  const DecodeState state = decode_state(layer.analysis);
  layer.state_bytes_per_token = (state.per_token + state.per_encoder_token).evaluate(values);
  if (!state.per_encoder_token.is_zero()) {
    layer.state_bytes_per_encoder_token = state.per_encoder_token.evaluate(values);
  }
  // A window caches its own keys only.
  const Integer window = std::max<Integer>(1, layer.graph.traits.window.size);
  layer.state_bytes = state.fixed.substitute(Symbol::windowed_keys, window).evaluate(values);
}

bool sums_a_state(const Graph& graph) {
  bool sums = false;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      const MixingKind kind = position_mixing(node.op, graph).kind;
      if (kind == MixingKind::recurrence) return false;
      sums = sums || kind == MixingKind::state;
    }
  }
  return sums;
}

void add_steps(LayerComplexity& layer) {
  const Graph& graph = layer.graph;
  const Expr steps = sequential_operations(graph);
  layer.sequential = of_one_sequence(steps, graph);
  layer.sequential_growth = growth_of(steps, graph);
  if (sums_a_state(graph)) layer.parallel_growth = Growth{Integer{1}};
  layer.path = path_length(graph);
}

double as_double(Integer value) { return static_cast<double>(value); }

/// Fraction of the leading power in a polynomial's value.
double leading_share(const LengthFunction& function, Integer length) {
  const auto next = std::ranges::upper_bound(function.pieces, length, {}, &LengthPiece::from);
  const LengthPolynomial& polynomial = std::prev(next)->polynomial;
  const bool in_last_piece = next == function.pieces.end();
  if (!in_last_piece || polynomial.coefficients().empty()) return 0;
  const Integer leading = checked_multiply(polynomial.coefficients().back(),
                                           checked_power(length, polynomial.degree()));
  return as_double(leading) / as_double(polynomial.at(length));
}

/// Bytes moved, with all experts read.
Expr moved_bytes(const Cost& cost) {
  return in_float32(cost.bytes_read + cost.bytes_written)
      .substitute(Symbol::experts_read, Symbol::num_experts);
}

double smaller_share(const LengthFunction& flops, const LengthFunction& bytes, Integer length) {
  return std::min(leading_share(flops, length), leading_share(bytes, length));
}

LengthFunction bytes_of_layer(const LayerComplexity& layer) {
  return in_length(moved_bytes(layer.analysis.total.forward), layer.graph);
}

LengthFunction bytes_of_core(const LayerComplexity& layer) {
  return in_length(moved_bytes(mixing_cost(layer.graph, layer.analysis)), layer.graph);
}

}  // namespace

AttentionImplementation default_attention(const ModelSpec& spec) noexcept {
  const StackSpec& stack = spec.main_stack();
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const bool windowed = stack.attention_of(variant).window.kind != WindowKind::none;
    if (windowed) return AttentionImplementation::fused;
  }
  return AttentionImplementation::eager;
}

LayerComplexity layer_complexity(Model model, AttentionImplementation attention) {
  LayerComplexity layer;
  layer.model = std::move(model);
  layer.attention = attention;
  layer.graph = build_graph(layer.model.spec, {Phase::prefill, attention});
  layer.analysis = analyze(layer.graph);
  layer.flops = growing(layer.analysis.total.forward.matrix_flops, layer.graph);
  const Expr core = mixing_cost(layer.graph, layer.analysis).matrix_flops;
  for (const NodeAnalysis* node : mixing_nodes(layer.graph, layer.analysis)) {
    layer.core_paths.push_back(node->path);
  }
  if (!core.is_zero()) layer.core = growing(core, layer.graph);
  add_peak(layer);
  add_steps(layer);
  add_state(layer);
  layer.parameters = layer.analysis.parameters.total.evaluate(layer.graph.sizes);
  return layer;
}

double leading_share(const LayerComplexity& layer, Integer length) {
  return smaller_share(layer.flops.by_length, bytes_of_layer(layer), length);
}

double leading_share_of_core(const LayerComplexity& layer, Integer length) {
  if (!layer.core) return 0;
  return smaller_share(layer.core->by_length, bytes_of_core(layer), length);
}

Integer moved_bytes(const LayerComplexity& layer, Integer length) {
  return bytes_of_layer(layer).at(length);
}

Integer moved_bytes_of_core(const LayerComplexity& layer, Integer length) {
  return bytes_of_core(layer).at(length);
}

}  // namespace headroom
