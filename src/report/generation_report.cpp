// GenerationReport -> Document and JSON: generation with and without a KV-cache.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "describe.h"
#include "legend.h"
#include "schema_version.h"
#include "study_words.h"
#include "units.h"
#include "writers.h"

namespace headroom::detail {
namespace {

std::string text_of(const DividedExpr& sum) {
  const std::string numerator = format(sum.numerator);
  return sum.divisor == 1 ? numerator : fmt::format("({}) / {}", numerator, to_string(sum.divisor));
}

Formula formula_of(const char* name, const DividedExpr& cost, const Growth& growth,
                   Legend& legend) {
  return {name, {legend.note(text_of(cost)), format(growth)}};
}

bool has_attention(const GenerationReport& report) {
  return !report.without.attention.numerator.is_zero();
}

/// Attention's formulas first: they differ by a power of the number of tokens.
std::vector<Block> formulas_of(const GenerationReport& report, Legend& legend) {
  const GenerationCost& without = report.without;
  const GenerationCost& with = report.with;
  const std::string tokens = legend.note(format(Symbol::new_tokens)) + " tokens";
  constexpr const char* kCached = "with a KV-cache";
  constexpr const char* kUncached = "without a KV-cache";
  std::vector<Block> blocks;
  if (has_attention(report)) {
    blocks = {Heading{"Attention FLOPs to generate " + tokens},
              formula_of(kUncached, without.attention, without.attention_growth, legend),
              formula_of(kCached, with.attention, with.attention_growth, legend)};
  }
  blocks.emplace_back(Heading{"All matrix FLOPs to generate " + tokens});
  blocks.emplace_back(formula_of(kUncached, without.flops, without.growth, legend));
  blocks.emplace_back(formula_of(kCached, with.flops, with.growth, legend));
  return blocks;
}

double ratio_of(Integer a, Integer b) { return static_cast<double>(a) / static_cast<double>(b); }

std::optional<double> ratio_of(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a / *b) : std::nullopt;
}

Column flops_column(const char* key, const char* title, Integer largest) {
  return number_column(key, title, in_unit(operation_unit(largest, OperationUnit::flop), 3));
}

/// Columns that the report has beside those of every report.
struct GenerationParts {
  explicit GenerationParts(const GenerationReport& report)
      : attention(has_attention(report)),
        predicted(!report.machine.empty()),
        measured(report.context.has_value()) {}
  bool attention;
  bool predicted;
  bool measured;
};

void add_time_columns(GenerationParts parts, std::vector<Column>& columns) {
  // Next to measured times, predicted ones are optional.
  const Importance importance = parts.measured ? Importance::optional : Importance::essential;
  if (parts.predicted) {
    columns.push_back(
        number_column("predicted_without_s", "Predicted without", {"[s]", 3}, importance));
    columns.push_back(number_column("predicted_with_s", "with", {"[s]", 3}, importance));
  }
  if (parts.measured) {
    columns.push_back(number_column("time_without_s", "Time without", {"[s]", 3}));
    columns.push_back(number_column("time_with_s", "with", {"[s]", 3}));
  }
  if (parts.predicted || parts.measured) {
    columns.push_back(number_column("time_ratio", "Ratio", {"", 1}));
  }
}

std::vector<Column> generation_columns(const GenerationRow& last, GenerationParts parts) {
  std::vector<Column> columns{number_column("new_tokens", format(Symbol::new_tokens)),
                              flops_column("matrix_flops_without", "Without", last.flops_without),
                              flops_column("matrix_flops_with", "With", last.flops_with),
                              number_column("flops_ratio", "Ratio", {"", 1})};
  if (parts.attention) {
    columns.push_back(
        flops_column("attention_flops_without", "Attention without", last.attention_without));
    columns.push_back(flops_column("attention_flops_with", "with", last.attention_with));
  }
  columns.push_back(number_column("kv_cache_bytes", "KV-cache",
                                  in_unit(byte_unit(last.kv_cache_bytes), 2),
                                  Importance::optional));
  add_time_columns(parts, columns);
  return columns;
}

void add_time_cells(const GenerationRow& row, GenerationParts parts, std::vector<Cell>& cells) {
  std::optional<double> ratio;
  if (parts.predicted) {
    cells.push_back(cell_or_none(row.predicted_without_s));
    cells.push_back(cell_or_none(row.predicted_with_s));
    ratio = ratio_of(row.predicted_without_s, row.predicted_with_s);
  }
  if (parts.measured) {
    cells.push_back(cell_or_none(row.time_without_s));
    cells.push_back(cell_or_none(row.time_with_s));
    ratio = ratio_of(row.time_without_s, row.time_with_s);
  }
  if (parts.predicted || parts.measured) cells.push_back(cell_or_none(ratio));
}

std::vector<Cell> generation_cells(const GenerationRow& row, GenerationParts parts) {
  std::vector<Cell> cells{Integer{row.new_tokens}, row.flops_without, row.flops_with,
                          ratio_of(row.flops_without, row.flops_with)};
  if (parts.attention) {
    cells.emplace_back(row.attention_without);
    cells.emplace_back(row.attention_with);
  }
  cells.emplace_back(row.kv_cache_bytes);
  add_time_cells(row, parts, cells);
  return cells;
}

Table generation_table(const GenerationReport& report) {
  const GenerationParts parts(report);
  Table table;
  table.columns = generation_columns(report.rows.back(), parts);
  for (const GenerationRow& row : report.rows) table.rows.push_back(generation_cells(row, parts));
  return table;
}

Json cost_json(const GenerationCost& cost) {
  return {{"order", format(cost.growth)},
          {"formula", text_of(cost.flops)},
          {"attention_order", format(cost.attention_growth)},
          {"attention_formula", text_of(cost.attention)}};
}

/// The prompt; rows have numbers of new tokens.
Json workload_json(const GenerationReport& report) {
  WorkloadRequest request;
  request.seq_len = report.prompt;
  request.enc_seq_len = report.enc_seq_len;
  return to_json(resolve(prompt_request(request), report.model.spec), report.model.spec);
}

std::string encoded_text(const GenerationReport& report) {
  if (!report.enc_seq_len) return {};
  return fmt::format(" · {} tokens encoded once", with_separators(*report.enc_seq_len));
}

}  // namespace

Document to_document(const GenerationReport& report) {
  const ModelSpec& spec = report.model.spec;
  Document document;
  document.add_subject(spec.name, describe(spec));
  document.add_line("workload",
                    fmt::format("{} tokens after a prompt of {}{} · one sequence · float32{}",
                                format(Symbol::new_tokens), report.prompt, encoded_text(report),
                                has_attention(report) ? " · eager attention" : ""));
  Legend legend;
  const std::vector<Block> formulas = formulas_of(report, legend);
  add_lines(legend.lines(), document);
  add_machines(report.machine, report.context, document);
  if (!report.lengths_run.empty()) {
    document.add_line("without", fmt::format("prefills of {} lengths were run; times between them "
                                             "are interpolated linearly",
                                             report.lengths_run.size()));
  }
  document.blocks.push_back(generation_table(report));
  document.blocks.insert(document.blocks.end(), formulas.begin(), formulas.end());
  return document;
}

Json to_json(const GenerationReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "complexity.schema.json";
  json["study"] = "generation";
  json["model"] = to_json(report.model);
  json["workload"] = workload_json(report);
  json["without_cache"] = cost_json(report.without);
  json["with_cache"] = cost_json(report.with);
  json["rows"] = Json::array();
  for (const GenerationRow& row : report.rows) {
    json["rows"].push_back({{"new_tokens", row.new_tokens},
                            {"matrix_flops_without", json_integer(row.flops_without)},
                            {"matrix_flops_with", json_integer(row.flops_with)},
                            {"attention_flops_without", json_integer(row.attention_without)},
                            {"attention_flops_with", json_integer(row.attention_with)},
                            {"kv_cache_bytes", json_integer(row.kv_cache_bytes)},
                            {"predicted_without_s", json_or_null(row.predicted_without_s)},
                            {"predicted_with_s", json_or_null(row.predicted_with_s)},
                            {"time_without_s", json_or_null(row.time_without_s)},
                            {"time_with_s", json_or_null(row.time_with_s)}});
  }
  json["lengths_run"] = report.lengths_run;
  json["machine"] = report.machine.empty() ? Json(nullptr) : Json(report.machine);
  json["context"] = report.context ? context_json(*report.context) : Json(nullptr);
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
