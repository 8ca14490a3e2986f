#include <algorithm>
#include <array>
#include <utility>

#include "growth.h"
#include "headroom/complexity.h"
#include "headroom/error.h"
#include "position_mixing.h"

namespace headroom {
namespace {

const Expr kTokens = Symbol::new_tokens;

/// Divisor of twelve_sums.
constexpr Integer kFaulhaber = 12;

/// 12·Σ i^power for i = 1, …, m (Faulhaber's formulas).
Expr twelve_sums(const Expr& m, unsigned power) {
  const Expr m2 = m * m;
  const std::array sums{Integer{12} * m, Integer{6} * m2 + Integer{6} * m,
                        Integer{4} * m2 * m + Integer{6} * m2 + Integer{2} * m,
                        Integer{3} * m2 * m2 + Integer{6} * m2 * m + Integer{3} * m2};
  if (power < sums.size()) return sums[power];
  throw Error(ErrorCode::internal, "a pass grows faster than the cube of its length");
}

DividedExpr reduced(const Expr& numerator, Integer divisor) {
  Integer common = divisor;
  for (const Term& term : numerator.terms()) common = gcd(common, term.coefficient);
  std::vector<Term> terms(numerator.terms().begin(), numerator.terms().end());
  for (Term& term : terms) term.coefficient /= common;
  return {Expr::from_terms(std::move(terms)), divisor / common};
}

DividedExpr operator+(const DividedExpr& a, const DividedExpr& b) {
  return reduced(b.divisor * a.numerator + a.divisor * b.numerator,
                 checked_multiply(a.divisor, b.divisor));
}

/// A decode step as a function of its visible keys: s = 1, t = i.
Expr of_step(const Expr& cost, const Graph& graph) {
  const Expr one = cost.substitute(Symbol::seq_len, Integer{1})
                       .substitute(Symbol::visible_pairs, Symbol::visible_keys)
                       .substitute(Symbol::windowed_pairs, Symbol::windowed_keys);
  return of_one_sequence(one, graph);
}

/// Matrix FLOPs of the encoder, which runs once, of a prefill without it, and of a decode step.
struct PassCosts {
  Expr encoder;
  Expr prefill;
  Expr step;
};

bool is_in_encoder(const NodeAnalysis& node) { return node.component.stack == StackRole::encoder; }

/// Costs of the nodes that `nodes` selects from a graph and its analysis.
template <class Nodes>
PassCosts costs_of(const ModelSpec& spec, const Nodes& nodes) {
  PassCosts costs;
  // A token is chosen by the logits of the last one alone.
  const Graph prefill = build_graph(spec, {.phase = Phase::prefill, .logits = Logits::last});
  const Analysis analysis = analyze(prefill);
  for (const NodeAnalysis* node : nodes(prefill, analysis)) {
    (is_in_encoder(*node) ? costs.encoder : costs.prefill) += node->cost.forward.matrix_flops;
  }
  costs.encoder = of_one_sequence(costs.encoder, prefill);
  costs.prefill = of_one_sequence(costs.prefill, prefill);
  const Graph decode = build_graph(spec, {Phase::decode, AttentionImplementation::eager});
  const Analysis one_step = analyze(decode);
  for (const NodeAnalysis* node : nodes(decode, one_step)) {
    costs.step += node->cost.forward.matrix_flops;
  }
  costs.step = of_step(costs.step, decode);
  return costs;
}

std::vector<const NodeAnalysis*> all_nodes(const Graph& /*graph*/, const Analysis& analysis) {
  std::vector<const NodeAnalysis*> nodes(analysis.nodes.size());
  std::ranges::transform(analysis.nodes, nodes.begin(),
                         [](const NodeAnalysis& node) { return &node; });
  return nodes;
}

/// The decoder recomputes all earlier tokens, and its keys and values of the encoder's output.
DividedExpr without_cache(const PassCosts& costs, std::int64_t prompt) {
  return sum_over_lengths(costs.prefill, prompt) + DividedExpr{costs.encoder, 1};
}

/// One prefill of the prompt for the first token, then one decode step per token, each with one
/// more key.
DividedExpr with_cache(const PassCosts& costs, std::int64_t prompt) {
  const Expr first = costs.prefill.substitute(Symbol::seq_len, Integer{prompt}) + costs.encoder;
  DividedExpr steps = sum_over_lengths(costs.step, prompt + 1);
  steps.numerator = steps.numerator.substitute(Symbol::new_tokens, kTokens - Integer{1});
  return steps + DividedExpr{first, 1};
}

bool is_windowed(const ModelSpec& spec) {
  return default_attention(spec) == AttentionImplementation::fused;
}

void require_plain(const ModelSpec& spec) {
  require_generates(spec);
  if (!is_windowed(spec)) return;
  throw Error(ErrorCode::invalid_input, "the sums hold for models that attend to the whole past",
              spec.name, "choose a model without sliding windows");
}

GenerationCost cost_of(DividedExpr flops, DividedExpr attention, const Graph& graph) {
  Growth growth = growth_of(flops.numerator, graph);
  Growth attention_growth = growth_of(attention.numerator, graph);
  return {std::move(flops), std::move(attention), std::move(growth), std::move(attention_growth)};
}

GenerationRow row_of(const GenerationReport& report, const Graph& graph, const Expr& cache,
                     std::int64_t new_tokens) {
  Bindings values = graph.sizes;
  values.set(Symbol::new_tokens, new_tokens);
  if (report.enc_seq_len) values.set(Symbol::enc_seq_len, *report.enc_seq_len);
  GenerationRow row;
  row.new_tokens = new_tokens;
  row.flops_without = report.without.flops.evaluate(values);
  row.attention_without = report.without.attention.evaluate(values);
  row.flops_with = report.with.flops.evaluate(values);
  row.attention_with = report.with.attention.evaluate(values);
  // The last token is never read back.
  values.set(Symbol::visible_keys, Integer{report.prompt} + new_tokens - 1);
  values.set(Symbol::batch_size, 1);
  for (const Symbol type : {Symbol::kv_cache_bytes, Symbol::activation_bytes}) {
    values.set(type, bytes_of(DType::float32));
  }
  row.kv_cache_bytes = cache.evaluate(values);
  return row;
}

}  // namespace

Integer DividedExpr::evaluate(const Bindings& bindings) const {
  const Integer value = numerator.evaluate(bindings);
  if (value % divisor != 0) throw Error(ErrorCode::internal, "a sum of integers is not an integer");
  return value / divisor;
}

DividedExpr sum_over_lengths(const Expr& cost, std::int64_t first) {
  const Expr last = kTokens + Expr(Integer{first} - 1);
  Expr sum;
  for (Term term : cost.terms()) {
    std::uint8_t& exponent = term.powers[index(Symbol::seq_len)];
    const unsigned power = std::exchange(exponent, std::uint8_t{0});
    const Expr lengths = twelve_sums(last, power) - twelve_sums(Integer{first} - 1, power);
    sum += Expr::from_terms({term}) * lengths;
  }
  return reduced(sum, kFaulhaber);
}

Workload prefill_of(const GenerationReport& report, std::int64_t length) {
  WorkloadRequest request;
  request.seq_len = length;
  request.enc_seq_len = report.enc_seq_len;
  request.attention = AttentionImplementation::eager;
  return resolve(prompt_request(request), report.model.spec);
}

std::vector<std::string> encoder_paths(const ModelSpec& spec) {
  const Graph graph = build_graph(spec, {Phase::prefill, AttentionImplementation::eager});
  const Analysis analysis = analyze(graph);
  std::vector<std::string> paths;
  for (const NodeAnalysis& node : analysis.nodes) {
    if (is_in_encoder(node)) paths.push_back(node.path);
  }
  return paths;
}

GenerationReport make_generation_report(Model model, const GenerationRequest& request) {
  require_plain(model.spec);
  GenerationReport report;
  report.prompt = request.prompt;
  if (model.spec.kind == ModelKind::encoder_decoder || request.enc_seq_len) {
    WorkloadRequest encoded;
    encoded.enc_seq_len = request.enc_seq_len;
    report.enc_seq_len = resolve(encoded, model.spec).enc_seq_len;
  }
  const Graph graph = build_graph(model.spec, {Phase::decode, AttentionImplementation::eager});
  const PassCosts all = costs_of(model.spec, all_nodes);
  const PassCosts attention = costs_of(model.spec, attention_nodes);
  report.without =
      cost_of(without_cache(all, report.prompt), without_cache(attention, report.prompt), graph);
  report.with =
      cost_of(with_cache(all, report.prompt), with_cache(attention, report.prompt), graph);
  const Expr cache = kv_cache_bytes(analyze(graph));
  report.rows.reserve(request.new_tokens.size());
  for (const std::int64_t n : request.new_tokens) {
    report.rows.push_back(row_of(report, graph, cache, n));
  }
  report.model = std::move(model);
  return report;
}

void add_prediction(GenerationReport& report, const MachineProfile& machine,
                    const TimeRequest& request) {
  constexpr std::size_t kPrefillsPredicted = 33;
  report.machine = machine.name;
  const ModelSpec& spec = report.model.spec;
  const std::vector<std::string> encoder = encoder_paths(spec);
  const std::int64_t last = report.prompt + report.rows.back().new_tokens - 1;
  std::vector<PrefillTime> prefills;
  prefills.reserve(kPrefillsPredicted);
  for (const std::int64_t length : spread_lengths(report.prompt, last, kPrefillsPredicted)) {
    const TimePrediction time = predict_time(spec, prefill_of(report, length), machine, request);
    PrefillTime prefill{length, time.total_s, 0};
    for (const OperatorTime& one : time.operators) {
      if (std::ranges::find(encoder, one.path) != encoder.end()) prefill.encoder_s += one.time_s;
    }
    prefills.push_back(prefill);
  }
  TimeRequest generation = request;
  generation.phase = MeasuredPhase::generate;
  const Workload prompt = prefill_of(report, report.prompt);
  for (GenerationRow& row : report.rows) {
    generation.new_tokens = row.new_tokens;
    row.predicted_with_s = predict_time(spec, prompt, machine, generation).total_s;
    row.predicted_without_s = time_without_cache(prefills, report.prompt, row.new_tokens);
  }
}

double time_without_cache(const std::vector<PrefillTime>& run, std::int64_t prompt,
                          std::int64_t new_tokens) {
  std::vector<LengthValue> decoder(run.size());
  std::ranges::transform(run, decoder.begin(), [](const PrefillTime& prefill) {
    return LengthValue{static_cast<double>(prefill.length), prefill.total_s - prefill.encoder_s};
  });
  return run.front().encoder_s + integrated_time(decoder, prompt, prompt + new_tokens - 1);
}

double integrated_time(const std::vector<LengthValue>& run, std::int64_t first, std::int64_t last) {
  double sum = 0;
  for (std::int64_t length = first; length <= last; ++length) {
    const auto x = static_cast<double>(length);
    auto right = std::ranges::lower_bound(run, x, {}, &LengthValue::length);
    if (right == run.end()) right = std::prev(right);
    if (right == run.begin() || right->length <= x) {
      sum += right->value;
      continue;
    }
    const LengthValue& left = *std::prev(right);
    const double share = (x - left.length) / (right->length - left.length);
    sum += left.value + share * (right->value - left.value);
  }
  return sum;
}

std::vector<std::int64_t> spread_lengths(std::int64_t first, std::int64_t last, std::size_t most) {
  std::vector<std::int64_t> lengths;
  const std::int64_t count =
      std::min(last - first + 1, std::max<std::int64_t>(2, static_cast<std::int64_t>(most)));
  lengths.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(count == 1 ? first : first + (last - first) * i / (count - 1));
  }
  return lengths;
}

}  // namespace headroom
