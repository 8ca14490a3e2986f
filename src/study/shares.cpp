#include <algorithm>
#include <optional>
#include <utility>

#include "growth.h"
#include "headroom/complexity.h"

namespace headroom {
namespace {

/// Greatest monomial that divides every term of both.
Monomial common_factor(const Expr& a, const Expr& b) {
  Monomial common{};
  common.fill(255);
  for (const Expr* expr : {&a, &b}) {
    for (const Term& term : expr->terms()) {
      std::ranges::transform(common, term.powers, common.begin(),
                             [](auto x, auto y) { return std::min(x, y); });
    }
  }
  return common;
}

/// Greatest common divisor of all coefficients of both.
Integer common_coefficient(const Expr& a, const Expr& b) {
  Integer common = 0;
  for (const Expr* expr : {&a, &b}) {
    for (const Term& term : expr->terms()) common = gcd(common, term.coefficient);
  }
  return common;
}

Expr divided(const Expr& expr, const Monomial& factor, Integer number) {
  std::vector<Term> terms(expr.terms().begin(), expr.terms().end());
  for (Term& term : terms) {
    term.coefficient /= number;
    std::ranges::transform(term.powers, factor, term.powers.begin(),
                           [](auto x, auto y) { return static_cast<std::uint8_t>(x - y); });
  }
  return Expr::from_terms(std::move(terms));
}

/// Adds the inequality of attention and feed-forward network, per position and layer if both
/// divide.
void add_inequality(SharesReport& report) {
  const Expr& attention = report.formulas[Share::attention];
  const Expr& ffn = report.formulas[Share::ffn];
  if (attention.is_zero() || ffn.is_zero()) return;
  const Graph& graph = report.model.graph;
  const Integer layers = graph.sizes.get(Symbol::num_hidden_layers).value_or(1);
  Monomial position{};
  position[index(Symbol::seq_len)] = 1;
  const Monomial common = common_factor(attention, ffn);
  const bool by_position = common[index(Symbol::seq_len)] > 0;
  const bool by_layer = common_coefficient(attention, ffn) % layers == 0;
  report.attention_side =
      divided(attention, by_position ? position : Monomial{}, by_layer ? layers : 1);
  report.ffn_side = divided(ffn, by_position ? position : Monomial{}, by_layer ? layers : 1);
}

}  // namespace

std::string_view name_of(Share share) noexcept {
  switch (share) {
    case Share::projections:
      return "projections";
    case Share::attention:
      return "attention";
    case Share::ffn:
      return "ffn";
    case Share::head:
      return "head";
    case Share::other:
      break;
  }
  return "other";
}

Share share_of(Part part) noexcept {
  switch (part) {
    case Part::attention_qkv:
    case Part::attention_gate:
    case Part::attention_out:
    case Part::mixer_in:
    case Part::mixer_gate:
    case Part::mixer_out:
    case Part::recurrent_input:
    case Part::cross_attention_query:
    case Part::cross_attention_key_value:
    case Part::cross_attention_out:
    case Part::norm_gate:
      return Share::projections;
    case Part::attention_query_key_norm:
    case Part::attention_rotary:
    case Part::attention_kv_cache:
    case Part::attention_feature_map:
    case Part::attention_scores:
    case Part::attention_softmax:
    case Part::attention_context:
    case Part::attention_core:
    case Part::attention_convolution:
    case Part::attention_compressor:
    case Part::attention_indexer:
    case Part::mixer_convolution:
    case Part::mixer_scan:
    case Part::relative_position_bias:
    case Part::cross_attention_kv_cache:
    case Part::cross_attention_scores:
    case Part::cross_attention_softmax:
    case Part::cross_attention_context:
    case Part::cross_attention_core:
      return Share::attention;
    case Part::mlp_up:
    case Part::mlp_activation:
    case Part::mlp_down:
    case Part::mlp_router:
    case Part::mlp_experts_up:
    case Part::mlp_experts_activation:
    case Part::mlp_experts_down:
    case Part::mlp_experts_combine:
    case Part::mlp_latent:
    case Part::mlp_shared_expert:
      return Share::ffn;
    case Part::pooler:
    case Part::head:
    case Part::loss:
      return Share::head;
    case Part::embeddings:
    case Part::conditioning:
    case Part::text_projection:
    case Part::modulation:
    case Part::recurrent_core:
    case Part::convolution:
    case Part::convolution_activation:
    case Part::layer_norm:
    case Part::rms_norm:
    case Part::residual:
    case Part::hyper_connection:
    case Part::dropout:
    case Part::vision_tower:
    case Part::audio_tower:
    case Part::projector:
    case Part::adapter:
    case Part::communication:
      break;
  }
  return Share::other;
}

SharesReport make_shares_report(Model model, AttentionImplementation attention,
                                const std::vector<std::int64_t>& lengths) {
  SharesReport report;
  report.model = layer_complexity(std::move(model), attention);
  const Graph& graph = report.model.graph;
  Shares<Expr> costs;
  for (const ComponentAnalysis& one : report.model.analysis.components) {
    costs[share_of(one.component.part)] += one.cost.forward.matrix_flops;
  }
  Shares<LengthFunction> functions;
  for (std::size_t i = 0; i < kShareCount; ++i) {
    report.formulas.values[i] = of_one_sequence(costs.values[i], graph);
    functions.values[i] = in_length(costs.values[i], graph);
  }
  report.attention_passes_ffn = overtakes_at(functions[Share::attention], functions[Share::ffn]);
  add_inequality(report);
  report.rows.reserve(lengths.size());
  for (const std::int64_t length : lengths) {
    ShareRow row;
    row.seq_len = length;
    for (std::size_t i = 0; i < kShareCount; ++i) {
      row.flops.values[i] = functions.values[i].at(length);
    }
    report.rows.push_back(row);
  }
  return report;
}

Shares<double> shares_of_times(const LayerComplexity& model,
                               const std::vector<std::pair<std::string, double>>& times) {
  Shares<double> shares;
  for (const auto& [path, time_s] : times) {
    const auto found = std::ranges::find(model.analysis.nodes, path, &NodeAnalysis::path);
    const bool known = found != model.analysis.nodes.end();
    shares[known ? share_of(found->component.part) : Share::other] += time_s;
  }
  return shares;
}

void add_prediction(SharesReport& report, const MachineProfile& machine,
                    const TimeRequest& request) {
  report.machine = machine.name;
  for (ShareRow& row : report.rows) {
    const TimePrediction time = predict_time(
        report.model.model.spec, workload_at(report.model, row.seq_len), machine, request);
    std::vector<std::pair<std::string, double>> times;
    times.reserve(time.operators.size());
    for (const OperatorTime& one : time.operators) times.emplace_back(one.path, one.time_s);
    row.predicted_s = shares_of_times(report.model, times);
  }
}

}  // namespace headroom
