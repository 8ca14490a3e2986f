// The analytic half of check_model: reports and shards.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "headroom/error.h"
#include "headroom/parallel_plan.h"
#include "model_properties.h"

namespace headroom::test {
namespace {

using nlohmann::json;

/// Integers beyond 64 bits have all their digits in JSON, but are doubles once parsed.
bool is_equal(const json& value, Integer figure) {
  const std::string digits = to_string(figure);
  return value.is_number_float() ? value.get<double>() == std::stod(digits)
                                 : value.dump() == digits;
}

void require_equal(const json& value, Integer figure, const std::string& what, Findings& findings) {
  findings.require(is_equal(value, figure), fmt::format("{}: JSON has {}, the report {}", what,
                                                        value.dump(), to_string(figure)));
}

/// The fields of a row; text in quotes counts as one field.
std::vector<std::string> csv_row(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

/// The last row's field of a CSV column; empty without that column.
std::string csv_total(const std::string& csv, const std::string& column, Findings& findings) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> keys = csv_row(line);
  std::vector<std::string> last;
  while (std::getline(lines, line)) {
    last = csv_row(line);
    findings.require(last.size() == keys.size(), "a CSV row has other columns than its header");
  }
  const auto at = std::ranges::find(keys, column) - keys.begin();
  return static_cast<std::size_t>(at) < last.size() ? last[static_cast<std::size_t>(at)] : "";
}

void check_sums(const AnalyzeReport& report, Findings& findings) {
  Integer parameters = 0;
  Integer flops = 0;
  Integer elementwise = 0;
  Integer written = 0;
  for (const ComponentFigures& component : report.figures.components) {
    parameters += component.parameters;
    flops += component.forward.matrix_flops;
    elementwise += component.forward.elementwise_flops;
    written += component.forward.bytes_written;
  }
  findings.require(parameters == report.figures.parameters, "components' parameters do not sum");
  findings.require(flops == report.figures.forward.matrix_flops, "components' FLOPs do not sum");
  findings.require(elementwise == report.figures.forward.elementwise_flops,
                   "components' element-wise FLOPs do not sum");
  findings.require(written == report.figures.forward.bytes_written,
                   "components' written bytes do not sum");
  const ParameterCount& p = report.analysis.parameters;
  const Expr roles = p.embedding + p.relative_position_bias + p.attention + p.recurrent +
                     p.convolution + p.mlp + p.norm + p.head + p.projector;
  findings.require(roles == p.total, "parameters by role do not sum");
  findings.require(report.figures.active_parameters <= report.figures.parameters &&
                       report.figures.active_parameters >= 0,
                   "active parameters are not part of all");
}

void check_formulas(const AnalyzeReport& report, Findings& findings) {
  const Bindings values = bindings_of(report.workload, report.graph);
  const auto equals = [&](const Expr& expr, Integer figure, const char* what) {
    const Expr shown = readable(expr, report.graph, report.workload);
    findings.require(shown.evaluate(values) == figure,
                     fmt::format("the formula of {} does not give its figure", what));
  };
  equals(report.analysis.parameters.total, report.figures.parameters, "parameters");
  const Cost& forward = report.analysis.total.forward;
  equals(forward.matrix_flops, report.figures.forward.matrix_flops, "matrix FLOPs");
  equals(forward.elementwise_flops, report.figures.forward.elementwise_flops, "element-wise FLOPs");
  equals(forward.bytes_read, report.figures.forward.bytes_read, "bytes read");
  equals(kv_cache_bytes(report.analysis), report.figures.kv_cache_bytes, "the KV-cache");
}

void check_formats(const AnalyzeReport& report, Findings& findings) {
  const Figures& figures = report.figures;
  const auto text = [&](Format format) {
    return render(report, {format, Detail::operators, 0, Colour::off});
  };
  const json document = json::parse(text(Format::json));
  require_equal(document["parameters"]["total"], figures.parameters, "parameters", findings);
  require_equal(document["flops"]["forward"]["matrix"], figures.forward.matrix_flops, "FLOPs",
                findings);
  require_equal(document["memory"]["weight_bytes"], figures.weight_bytes, "weights", findings);
  const std::string csv = render(report, {Format::csv, Detail::summary, 0, Colour::off});
  const auto total = [&](const char* column, Integer figure) {
    const std::string field = csv_total(csv, column, findings);
    findings.require(
        field == (figure == 0 ? "" : to_string(figure)),
        fmt::format("{}: CSV has {}, the report {}", column, field, to_string(figure)));
  };
  total("parameters", figures.parameters);
  total("matrix_flops", figures.forward.matrix_flops);
  const std::string shown = fmt::format("{}", with_separators(figures.parameters));
  for (const Format format : {Format::table, Format::markdown, Format::html}) {
    findings.require(figures.parameters == 0 || text(format).find(shown) != std::string::npos,
                     "a table lacks the parameters");
  }
}

Integer stored_parameters(const Graph& rank, const ParallelPlan& plan) {
  Integer parameters = 0;
  for (const Weight& weight : rank.weights) {
    if (weight.kind == WeightKind::buffer) continue;
    const Part part = weight.component.part;
    const bool routed = part == Part::mlp_experts_up || part == Part::mlp_experts_down;
    const Integer stored = (weight.repeat * weight.elements()).evaluate(rank.sizes);
    parameters += stored * (is_divided(weight) ? plan.tensor : 1) * (routed ? plan.expert : 1);
  }
  return parameters;
}

}  // namespace

void check_report(const ModelSpec& spec, const WorkloadRequest& request, Findings& findings) {
  Model model;
  model.spec = spec;
  const AnalyzeReport report = make_analyze_report(std::move(model), request);
  check_sums(report, findings);
  check_formulas(report, findings);
  check_formats(report, findings);
}

void check_explanations(const ModelSpec& spec, const WorkloadRequest& request, Findings& findings) {
  for (const Subject subject :
       {Subject::flops, Subject::params, Subject::activations, Subject::kv}) {
    if (subject == Subject::kv && (request.phase == Phase::train || !spec.main_stack().causal())) {
      continue;
    }
    Model model;
    model.spec = spec;
    const ExplainReport report = make_explain_report(std::move(model), request, subject);
    const auto holds = [&](const ExplainedFigure& figure) {
      findings.require(figure.formula.evaluate(report.values) == figure.value,
                       fmt::format("explain {}: {} is not the value of its formula",
                                   name_of(subject), figure.name));
    };
    holds(report.whole);
    Integer sum = 0;
    Integer largest = 0;
    std::size_t parts = 0;
    for (const ExplainedFigure& part : report.parts) {
      holds(part);
      if (part.name == "each further token") continue;  // beside the whole
      ++parts;
      sum += part.value;
      largest = std::max(largest, part.value);
    }
    const bool peak = subject == Subject::activations && request.phase != Phase::train;
    const bool forward_only = subject == Subject::flops && request.phase == Phase::train;
    if (parts > 0 && !forward_only) {
      findings.require(
          (peak ? largest : sum) == report.whole.value,
          fmt::format("explain {}: the parts do not make the whole", name_of(subject)));
    }
    const json document =
        json::parse(render(report, {Format::json, Detail::summary, 0, Colour::off}));
    require_equal(document["whole"]["value"], report.whole.value, "explain", findings);
  }
}

void check_shards(const ModelSpec& spec, Random& random, Findings& findings) {
  const Graph whole = build_graph(spec, {Phase::train, AttentionImplementation::fused});
  const ShardingLimits limits = limits_of(whole, 128);
  ParallelPlan plan;
  plan.tensor = random.between(1, 4);
  plan.pipeline = random.between(1, 3);
  plan.data = random.between(1, 4);
  plan.expert = random.between(1, 2) == 1 ? 1 : plan.data;
  if (broken_rule(plan, limits)) return;
  // Key-value heads and groups of state-space heads may be repeated, and the vocabulary is padded:
  // then ranks store more.
  const Integer vocab = whole.sizes.get(Symbol::vocab_size).value_or(0);
  const Integer groups = whole.sizes.get(Symbol::n_groups).value_or(0);
  const bool repeats =
      limits.kv_heads % plan.tensor != 0 || groups % plan.tensor != 0 || vocab % plan.tensor != 0;
  Integer parameters = 0;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    parameters += stored_parameters(shard_stage(whole, plan, stage), plan);
  }
  const Integer expected = count_parameters(whole).total.evaluate(whole.sizes);
  // A tied head on the last stage is a copy of the first stage's embedding.
  const bool copies = plan.pipeline > 1;
  findings.require(repeats || copies ? parameters >= expected : parameters == expected,
                   fmt::format("{}: the ranks store {} parameters, the model has {}",
                               describe(plan), to_string(parameters), to_string(expected)));
}

}  // namespace headroom::test
