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

struct PassCost {
  Expr flops;
  Expr attention;
};

PassCost cost_of_pass(const ModelSpec& spec, Phase phase) {
  const Graph graph = build_graph(spec, {phase, AttentionImplementation::eager});
  const Analysis analysis = analyze(graph);
  const auto simplified = [&](const Expr& cost) {
    return phase == Phase::decode ? of_step(cost, graph) : of_one_sequence(cost, graph);
  };
  return {simplified(analysis.total.forward.matrix_flops),
          simplified(mixing_cost(graph, analysis).matrix_flops)};
}

/// One prefill of the prompt for the first token, then one decode step per token, each with one
/// more key.
DividedExpr with_cache(const Expr& pass, const Expr& step, std::int64_t prompt) {
  const Expr first = pass.substitute(Symbol::seq_len, Integer{prompt});
  DividedExpr steps = sum_over_lengths(step, prompt + 1);
  steps.numerator = steps.numerator.substitute(Symbol::new_tokens, kTokens - Integer{1});
  return steps + DividedExpr{first, 1};
}

bool is_windowed(const ModelSpec& spec) {
  return default_attention(spec) == AttentionImplementation::fused;
}

void require_plain(const ModelSpec& spec) {
  require_generates(spec);
  if (!is_windowed(spec) && !spec.reads_two_sequences()) return;
  throw Error(ErrorCode::invalid_input,
              "the sums hold for decoder-only models that attend to the whole past", spec.name,
              "choose a decoder without sliding windows");
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
  GenerationRow row;
  row.new_tokens = new_tokens;
  row.flops_without = report.without.flops.evaluate(values);
  row.attention_without = report.without.attention.evaluate(values);
  row.flops_with = report.with.flops.evaluate(values);
  row.attention_with = report.with.attention.evaluate(values);
  // The last token is never read back.
  values.set(Symbol::visible_keys, Integer{report.prompt} + new_tokens - 1);
  values.set(Symbol::batch_size, 1);
  values.set(Symbol::kv_cache_bytes, bytes_of(DType::float32));
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

GenerationReport make_generation_report(Model model, std::int64_t prompt,
                                        const std::vector<std::int64_t>& new_tokens) {
  require_plain(model.spec);
  GenerationReport report;
  report.prompt = prompt;
  const Graph graph = build_graph(model.spec, {Phase::decode, AttentionImplementation::eager});
  const PassCost pass = cost_of_pass(model.spec, Phase::prefill);
  const PassCost step = cost_of_pass(model.spec, Phase::decode);
  report.without = cost_of(sum_over_lengths(pass.flops, prompt),
                           sum_over_lengths(pass.attention, prompt), graph);
  report.with = cost_of(with_cache(pass.flops, step.flops, prompt),
                        with_cache(pass.attention, step.attention, prompt), graph);
  const Expr cache = kv_cache_bytes(analyze(graph));
  report.rows.reserve(new_tokens.size());
  for (const std::int64_t n : new_tokens) {
    report.rows.push_back(row_of(report, graph, cache, n));
  }
  report.model = std::move(model);
  return report;
}

void add_prediction(GenerationReport& report, const MachineProfile& machine,
                    const TimeRequest& request) {
  constexpr std::size_t kPrefillsPredicted = 33;
  report.machine = machine.name;
  const LayerComplexity model = layer_complexity(report.model, AttentionImplementation::eager);
  const auto time_of = [&](std::int64_t length, const TimeRequest& one) {
    return predict_time(model.model.spec, workload_at(model, length), machine, one).total_s;
  };
  const std::int64_t last = report.prompt + report.rows.back().new_tokens - 1;
  std::vector<LengthValue> prefills;
  prefills.reserve(kPrefillsPredicted);
  for (const std::int64_t length : spread_lengths(report.prompt, last, kPrefillsPredicted)) {
    prefills.push_back({static_cast<double>(length), time_of(length, request)});
  }
  TimeRequest generation = request;
  generation.phase = MeasuredPhase::generate;
  for (GenerationRow& row : report.rows) {
    generation.new_tokens = row.new_tokens;
    row.predicted_with_s = time_of(report.prompt, generation);
    row.predicted_without_s =
        integrated_time(prefills, report.prompt, report.prompt + row.new_tokens - 1);
  }
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
