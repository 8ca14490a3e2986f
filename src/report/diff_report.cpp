// DiffReport -> Document and JSON: two models side by side.
#include <fmt/format.h>

#include <optional>

#include "describe.h"
#include "diff_rows.h"
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

std::optional<Integer> value_if(bool applies, Integer value) {
  return applies ? std::optional(value) : std::nullopt;
}

std::vector<DiffRow> size_rows(const DiffReport& report) {
  std::vector<DiffRow> rows;
  for (const SymbolInfo& symbol : symbols()) {
    const auto a = report.a.graph.sizes.get(symbol.symbol);
    const auto b = report.b.graph.sizes.get(symbol.symbol);
    if (!a || !b || (*a == 0 && *b == 0)) continue;
    rows.push_back({std::string(symbol.key), value_if(*a != 0, *a), value_if(*b != 0, *b)});
  }
  return rows;
}

std::vector<DiffRow> diff_rows(const DiffReport& report) {
  std::vector<DiffRow> rows = size_rows(report);
  for (DiffRow& row : figure_rows(report)) {
    if (row.a || row.b) rows.push_back(std::move(row));
  }
  return rows;
}

/// b / a, if both are known and a is not 0.
std::optional<double> ratio_of(const DiffRow& row) {
  if (!row.a || !row.b || *row.a == 0) return std::nullopt;
  return static_cast<double>(*row.b) / static_cast<double>(*row.a);
}

}  // namespace

std::vector<DiffRow> figure_rows(const DiffReport& report) {
  const auto row = [&](std::string quantity, auto figure) {
    return DiffRow{std::move(quantity), figure(report.a), figure(report.b)};
  };
  using Report = const AnalyzeReport&;
  const auto trains = [](Report r) { return r.workload.phase == Phase::train; };
  const auto routes = [](Report r) { return r.figures.active_parameters != r.figures.parameters; };
  const auto cached = [](Report r) { return !r.analysis.kv_cache.empty(); };
  return {
      row("parameters", [](Report r) { return std::optional(r.figures.parameters); }),
      row("active_parameters",
          [&](Report r) { return value_if(routes(r), r.figures.active_parameters); }),
      row("weight_bytes", [](Report r) { return std::optional(r.figures.weight_bytes); }),
      row("matrix_flops", [](Report r) { return std::optional(r.figures.forward.matrix_flops); }),
      row("elementwise_flops",
          [](Report r) { return std::optional(r.figures.forward.elementwise_flops); }),
      row("backward_matrix_flops",
          [&](Report r) { return value_if(trains(r), r.figures.backward.matrix_flops); }),
      row("bytes_read", [](Report r) { return std::optional(r.figures.forward.bytes_read); }),
      row("bytes_written", [](Report r) { return std::optional(r.figures.forward.bytes_written); }),
      row("peak_activation_bytes",
          [&](Report r) { return value_if(!trains(r), r.figures.peak_activation_bytes); }),
      row("saved_activation_bytes",
          [&](Report r) { return value_if(trains(r), r.figures.saved_activation_bytes); }),
      row("kv_cache_bytes",
          [&](Report r) { return value_if(cached(r), r.figures.kv_cache_bytes); }),
      row("kv_cache_bytes_per_token",
          [&](Report r) { return value_if(cached(r), r.figures.kv_cache_bytes_per_token); }),
  };
}

Document to_document(const DiffReport& report) {
  Table table;
  table.columns = {words_column("quantity", "Quantity"),
                   number_column(report.a.model.spec.name, report.a.model.spec.name),
                   number_column(report.b.model.spec.name, report.b.model.spec.name),
                   number_column("ratio", "Ratio", {"", 3})};
  for (const DiffRow& row : diff_rows(report)) {
    table.rows.push_back(
        {row.quantity, cell_or_none(row.a), cell_or_none(row.b), cell_or_none(ratio_of(row))});
  }
  Document document;
  for (const AnalyzeReport* side : {&report.a, &report.b}) {
    document.blocks.push_back(Line{side->model.spec.name, describe(side->model.spec)});
    document.blocks.push_back(Line{"", describe(side->workload, side->model.spec)});
  }
  document.blocks.push_back(std::move(table));
  return document;
}

Json to_json(const DiffReport& report) {
  const auto value = [](const std::optional<Integer>& number) {
    return number ? json_integer(*number) : Json(nullptr);
  };
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "diff.schema.json";
  json["a"] = {{"model", to_json(report.a.model)},
               {"workload", to_json(report.a.workload, report.a.model.spec, report.a.kv_cache)}};
  json["b"] = {{"model", to_json(report.b.model)},
               {"workload", to_json(report.b.workload, report.b.model.spec, report.b.kv_cache)}};
  json["rows"] = Json::array();
  for (const DiffRow& row : diff_rows(report)) {
    const auto relative = ratio_of(row);
    json["rows"].push_back({{"quantity", row.quantity},
                            {"a", value(row.a)},
                            {"b", value(row.b)},
                            {"ratio", relative ? Json(*relative) : Json(nullptr)}});
  }
  return json;
}

}  // namespace headroom::detail
