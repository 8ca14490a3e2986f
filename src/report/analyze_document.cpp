// AnalyzeReport -> Document: components or operators, memory, and the check against the published
// parameter count.
#include <fmt/format.h>

#include <algorithm>

#include "analyze_answer.h"
#include "describe.h"
#include "factored.h"
#include "headroom/analysis.h"
#include "headroom/report.h"
#include "kv_cache_report.h"
#include "legend.h"
#include "storage_report.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Cell nonzero(Integer value) { return value == 0 ? Cell{} : Cell{value}; }

Cell percent_of(Integer part, Integer whole) {
  if (part == 0 || whole == 0) return {};
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Matrix FLOPs per byte moved; no value without matrix FLOPs.
Cell intensity(const CostFigures& cost) {
  const Integer bytes = cost.bytes_read + cost.bytes_written;
  if (cost.matrix_flops == 0 || bytes == 0) return {};
  return static_cast<double>(cost.matrix_flops) / static_cast<double>(bytes);
}

struct CostRow {
  std::string name;
  Integer parameters;
  Integer weight_bytes;
  CostFigures forward;
  CostFigures backward;
};

OperationUnit operation_unit_of(const AnalyzeReport& report) {
  return report.analysis.convention == Convention::fvcore ? OperationUnit::multiply_add
                                                          : OperationUnit::flop;
}

/// Builds the table of components or operators.
class CostTable {
 public:
  CostTable(const AnalyzeReport& report, std::string first_key, std::string first_title)
      : total_{"total", report.figures.parameters, report.figures.weight_bytes,
               report.figures.forward, report.figures.backward},
        training_(report.workload.phase == Phase::train) {
    const OperationUnit kind = operation_unit_of(report);
    const Unit matrix =
        operation_unit(std::max(total_.forward.matrix_flops, total_.backward.matrix_flops), kind);
    const Unit elementwise = operation_unit(total_.forward.elementwise_flops, OperationUnit::flop);
    const std::string matrix_key =
        kind == OperationUnit::flop ? "matrix_flops" : "matrix_multiply_adds";
    const NumberFormat percent{"[%]", 2};
    table_.columns = {
        words_column(std::move(first_key), std::move(first_title)),
        number_column("parameters", "Parameters"),
        share_column("parameter_share_percent", "Share", percent, Importance::optional),
        number_column("weight_bytes", "Weights", in_unit(byte_unit(total_.weight_bytes), 2)),
        number_column(matrix_key, training_ ? "Forward" : "Matrix", in_unit(matrix, 3)),
        share_column(matrix_key + "_share_percent", "Share", percent, Importance::optional),
    };
    if (training_) {
      table_.columns.push_back(
          number_column("backward_" + matrix_key, "Backward", in_unit(matrix, 3)));
    }
    table_.columns.push_back(number_column("elementwise_flops", "Elementwise",
                                           in_unit(elementwise, 3), Importance::optional));
    table_.columns.push_back(number_column(
        "intensity_flops_per_byte", "Intensity",
        {kind == OperationUnit::flop ? "[FLOP/B]" : "[MAC/B]", 1}, Importance::optional));
  }

  void add(const CostRow& row) {
    std::vector<Cell> cells{row.name,
                            nonzero(row.parameters),
                            percent_of(row.parameters, total_.parameters),
                            nonzero(row.weight_bytes),
                            nonzero(row.forward.matrix_flops),
                            percent_of(row.forward.matrix_flops, total_.forward.matrix_flops)};
    if (training_) cells.push_back(nonzero(row.backward.matrix_flops));
    cells.push_back(nonzero(row.forward.elementwise_flops));
    cells.push_back(intensity(row.forward));
    table_.rows.push_back(std::move(cells));
  }

  [[nodiscard]] Table finish() && {
    add(total_);
    table_.total_rows = 1;
    return std::move(table_);
  }

 private:
  CostRow total_;
  bool training_;
  Table table_;
};

CostFigures figures_of(const Cost& cost, const Bindings& values) {
  return {cost.matrix_flops.evaluate(values), cost.elementwise_flops.evaluate(values),
          cost.bytes_read.evaluate(values), cost.bytes_written.evaluate(values)};
}

Table component_table(const AnalyzeReport& report) {
  CostTable table(report, "component", "Component");
  for (std::size_t i = 0; i < report.analysis.components.size(); ++i) {
    const ComponentFigures& figures = report.figures.components[i];
    table.add({name_of(report.analysis.components[i].component), figures.parameters,
               figures.weight_bytes, figures.forward, figures.backward});
  }
  return std::move(table).finish();
}

Table operator_table(const AnalyzeReport& report) {
  const Bindings values = bindings_of(report.workload, report.graph);
  CostTable table(report, "operator", "Operator");
  for (const NodeAnalysis& node : report.analysis.nodes) {
    table.add({node.path, node.parameters.evaluate(values), node.weight_bytes.evaluate(values),
               figures_of(node.cost.forward, values), figures_of(node.cost.backward, values)});
  }
  return std::move(table).finish();
}

std::string with_formula(const AnalyzeReport& report, Integer bytes, const Expr& formula,
                         const std::string& where, Legend& legend) {
  return fmt::format("{}{} = {}", describe_bytes(bytes), where,
                     legend.note(format(readable(formula, report.graph, report.workload))));
}

/// The exact count of the forward pass and its formula.
Line flops_line(const AnalyzeReport& report, Legend& legend) {
  const bool multiply_adds = operation_unit_of(report) == OperationUnit::multiply_add;
  const Expr formula =
      readable(report.analysis.total.forward.matrix_flops, report.graph, report.workload);
  return {multiply_adds ? "matrix MACs" : "matrix FLOPs",
          fmt::format("{} = {}", with_separators(report.figures.forward.matrix_flops),
                      legend.note(format_factored(formula)))};
}

std::string describe_flops(Integer count) {
  const Unit unit = operation_unit(count, OperationUnit::flop);
  return fmt::format("{} {}", cell_text(count, in_unit(unit, 3)), unit.name);
}

/// FLOPs of recurrent mixers by both of their algorithms.
void add_scan(const AnalyzeReport& report, Document& document) {
  const auto flops = scan_flops(report.model.spec, report.workload);
  if (!flops) return;
  document.add_line("scan FLOPs",
                    fmt::format("{} by the recurrence, as counted; {} in chunks of {}, as the "
                                "reference code's prefill runs",
                                describe_flops(flops->recurrence), describe_flops(flops->chunked),
                                flops->chunk_size));
}

/// FLOPs of a training step: forward, backward and recomputation.
Line step_line(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  std::string text = fmt::format("{} = forward {} + backward {}",
                                 describe_operations(report, step_operations(figures)),
                                 describe_operations(report, figures.forward.matrix_flops),
                                 describe_operations(report, figures.backward.matrix_flops));
  if (figures.recompute.matrix_flops != 0) {
    text += " + recompute " + describe_operations(report, figures.recompute.matrix_flops);
  }
  return {"training step", text};
}

void add_memory(const AnalyzeReport& report, Legend& legend, Document& document) {
  const Figures& figures = report.figures;
  const Analysis& analysis = report.analysis;
  document.add_line("weights", describe_storage(report.storage, figures.weight_bytes));
  if (report.workload.phase == Phase::train) {
    document.add_line("saved for backward",
                      with_formula(report, figures.saved_activation_bytes,
                                   saved_bytes(analysis, report.workload.recompute), "", legend));
  } else if (!analysis.live.empty()) {
    const LiveBytes& peak = analysis.live[figures.peak_index];
    document.add_line("peak activations",
                      with_formula(report, figures.peak_activation_bytes, peak.bytes,
                                   fmt::format(" at {}", peak.path), legend));
  }
  if (analysis.kv_cache.empty()) return;
  const KvCacheUse& cache = report.kv_cache.value();
  document.add_line(
      "KV-cache",
      has_plain_values(cache)
          ? with_formula(report, figures.kv_cache_bytes, kv_cache_bytes(analysis), "", legend)
          : fmt::format("{} in {}", describe_bytes(figures.kv_cache_bytes),
                        describe_format(cache)));
  const Integer per_token = figures.kv_cache_bytes_per_token;
  const bool has_windows = report.graph.traits.window.kind != WindowKind::none;
  document.add_line("KV-cache per token", per_token > 0
                                              ? fmt::format("{} B", with_separators(per_token))
                                          : has_windows ? "0 B (full windows)"
                                                        : "0 B (constant-size state)");
  if (has_policy(cache)) {
    document.add_line("KV-cache steady state", describe_steady(cache));
    document.add_line("KV-cache reserved", describe_reserved(cache));
  }
  if (!report.generation) return;
  const KvCacheUse& last = report.generation->use;
  document.add_line("KV-cache at the end",
                    fmt::format("{} after {}", describe_bytes(last.used_bytes),
                                with_noun_grouped(report.generation->new_tokens, "new token")));
  if (has_policy(last)) document.add_line("reserved at the end", describe_reserved(last));
}

Verdict check_of(const Model& model, Integer parameters) {
  const std::string count =
      model.reference ? with_separators(model.reference->parameters) : std::string();
  switch (check_reference(model, parameters)) {
    case ReferenceCheck::none:
      return {"–  no reference count", Outcome::none};
    case ReferenceCheck::match:
      return {fmt::format("MATCH  parameters equal the reference count {}", count), Outcome::good};
    case ReferenceCheck::match_rounded:
      return {fmt::format("MATCH  parameters agree with the rounded reference count {}", count),
              Outcome::good};
    case ReferenceCheck::mismatch:
      break;
  }
  return {fmt::format("MISMATCH  reference count {}", count), Outcome::bad};
}

/// The source up to its first semicolon, or the colon in front of a list that the semicolon cuts;
/// `presets show` prints all of it.
std::string short_source(const ReferenceCount& reference) {
  const std::string& whole = reference.source;
  const std::size_t end = whole.find(';');
  if (end == std::string::npos) return whole;
  return whole.substr(0, std::min(end, whole.find(": ")));
}

}  // namespace

Document to_document(const AnalyzeReport& report, Detail detail) {
  const ModelSpec& spec = report.model.spec;
  const std::string cache_type = report.kv_cache ? describe_format(*report.kv_cache) : "";
  Document document;
  document.blocks = {
      Line{spec.name, describe(spec), LineRole::subject},
      Line{"workload", describe(report.workload, spec, cache_type)},
      Line{"types", describe_types(report.workload, cache_type)},
      Line{"convention", std::string(info(report.analysis.convention).summary)},
      Line{"total", answer_of(report), LineRole::verdict},
      detail == Detail::operators ? operator_table(report) : component_table(report),
  };
  Legend legend;
  document.blocks.push_back(flops_line(report, legend));
  add_scan(report, document);
  if (report.workload.phase == Phase::train) document.blocks.push_back(step_line(report));
  add_memory(report, legend, document);
  add_lines(legend.lines(), document);
  const Verdict check = check_of(report.model, report.figures.parameters);
  document.add_verdict("check", check.text, check.outcome);
  if (report.model.reference) document.add_verdict("", short_source(*report.model.reference));
  if (report.time) add_time(*report.time, detail, document);
  return document;
}

}  // namespace headroom::detail
