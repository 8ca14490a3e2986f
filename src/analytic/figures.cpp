#include <algorithm>

#include "headroom/analysis.h"
#include "headroom/error.h"

namespace headroom {
namespace {

[[noreturn]] void throw_unbound(const SymbolValues::Symbols& unbound) {
  std::string names;
  for (const SymbolInfo& symbol : symbols()) {
    if (!unbound[index(symbol.symbol)]) continue;
    names += (names.empty() ? "" : ", ") + std::string(symbol.key);
  }
  throw Error(ErrorCode::internal, "unbound symbols in a compiled formula: " + names);
}

}  // namespace

SymbolValues::SymbolValues(const Bindings& bindings) {
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto value = bindings.get(symbol.symbol)) set(symbol.symbol, *value);
  }
}

CompiledExpr::CompiledExpr(const Expr& expr, const Bindings& sizes) {
  const Expr rest = expr.substitute(sizes);
  for (const Term& term : rest.terms()) {
    CompiledTerm compiled{term.coefficient, static_cast<std::uint32_t>(factors_.size()), 0};
    for (std::size_t symbol = 0; symbol < kSymbolCount; ++symbol) {
      factors_.insert(factors_.end(), term.powers[symbol], static_cast<std::uint8_t>(symbol));
      compiled.factor_count += term.powers[symbol];
    }
    terms_.push_back(compiled);
  }
  for (const std::uint8_t symbol : factors_) needed_.set(symbol);
}

Integer CompiledExpr::evaluate(const SymbolValues& values) const {
  const SymbolValues::Symbols unbound = needed_ & ~values.bound();
  if (unbound.any()) throw_unbound(unbound);
  Integer sum = 0;
  for (const CompiledTerm& term : terms_) {
    Integer product = term.coefficient;
    for (const std::uint8_t symbol :
         std::span(factors_).subspan(term.first_factor, term.factor_count)) {
      product = checked_multiply(product, values[symbol]);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

SymbolValues values_of(const Workload& workload, const LayerTraits& traits) {
  return SymbolValues(bindings_of(workload, traits));
}

Evaluator::CompiledCost Evaluator::compile(const Cost& cost, const Bindings& sizes) {
  return {CompiledExpr(cost.matrix_flops, sizes), CompiledExpr(cost.elementwise_flops, sizes),
          CompiledExpr(cost.bytes_read, sizes), CompiledExpr(cost.bytes_written, sizes)};
}

CostFigures Evaluator::evaluate(const CompiledCost& cost, const SymbolValues& values) {
  return {cost.matrix_flops.evaluate(values), cost.elementwise_flops.evaluate(values),
          cost.bytes_read.evaluate(values), cost.bytes_written.evaluate(values)};
}

Evaluator::Evaluator(const Graph& graph, const Analysis& analysis, Recompute recompute)
    : traits_(graph.traits),
      parameters_(analysis.parameters.total, graph.sizes),
      active_parameters_(analysis.parameters.active, graph.sizes),
      weight_bytes_(analysis.weight_bytes, graph.sizes),
      forward_(compile(analysis.total.forward, graph.sizes)),
      backward_(compile(analysis.total.backward, graph.sizes)),
      recompute_(compile(analysis.recompute, graph.sizes)),
      saved_(saved_bytes(analysis, recompute), graph.sizes),
      kv_cache_(headroom::kv_cache_bytes(analysis), graph.sizes),
      per_token_while_filling_(headroom::kv_cache_bytes_per_token(analysis, WindowFill::filling),
                               graph.sizes),
      per_token_when_full_(headroom::kv_cache_bytes_per_token(analysis, WindowFill::full),
                           graph.sizes),
      compressed_key_(compressed_key_bytes(analysis, Symbol::compressed_keys), graph.sizes),
      heavily_compressed_key_(compressed_key_bytes(analysis, Symbol::heavily_compressed_keys),
                              graph.sizes) {
  std::vector<Expr> seen;
  for (std::size_t i = 0; i < analysis.live.size(); ++i) {
    const Expr bytes = analysis.live[i].bytes.substitute(graph.sizes);
    if (std::ranges::find(seen, bytes) != seen.end()) continue;
    seen.push_back(bytes);
    peaks_.push_back({CompiledExpr(bytes, graph.sizes), i});
  }
  for (const ComponentAnalysis& component : analysis.components) {
    components_.push_back({CompiledExpr(component.parameters, graph.sizes),
                           CompiledExpr(component.weight_bytes, graph.sizes),
                           compile(component.cost.forward, graph.sizes),
                           compile(component.cost.backward, graph.sizes)});
  }
}

Integer Evaluator::bytes_of_next_token(const Workload& workload, const SymbolValues& values) const {
  const bool fills = window_fill(workload, traits_) == WindowFill::filling;
  Integer bytes = (fills ? per_token_while_filling_ : per_token_when_full_).evaluate(values);
  const auto add = [&](const CompiledExpr& key, std::int64_t tokens_of_key) {
    if (tokens_of_key > 1) bytes = checked_add(bytes, key.evaluate(values) / tokens_of_key);
  };
  add(compressed_key_, traits_.indexed_rate);
  add(heavily_compressed_key_, traits_.heavy_compression_rate);
  return bytes;
}

Figures Evaluator::evaluate(const Workload& workload) const {
  const SymbolValues values = values_of(workload, traits_);
  Figures figures;
  figures.parameters = parameters_.evaluate(values);
  figures.active_parameters = active_parameters_.evaluate(values);
  figures.weight_bytes = weight_bytes_.evaluate(values);
  figures.forward = evaluate(forward_, values);
  figures.backward = evaluate(backward_, values);
  figures.recompute = evaluate(recompute_, values);
  for (const CompiledPeak& peak : peaks_) {
    const Integer bytes = peak.bytes.evaluate(values);
    if (bytes <= figures.peak_activation_bytes) continue;
    figures.peak_activation_bytes = bytes;
    figures.peak_index = peak.index;
  }
  figures.saved_activation_bytes = saved_.evaluate(values);
  figures.kv_cache_bytes = kv_cache_.evaluate(values);
  figures.kv_cache_bytes_per_token = bytes_of_next_token(workload, values);
  figures.components.reserve(components_.size());
  for (const CompiledComponent& component : components_) {
    figures.components.push_back(
        {component.parameters.evaluate(values), component.weight_bytes.evaluate(values),
         evaluate(component.forward, values), evaluate(component.backward, values)});
  }
  return figures;
}

}  // namespace headroom
