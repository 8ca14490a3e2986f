// Comparison -> table and JSON (reports/compare.schema.json).
#include <fmt/format.h>

#include "describe.h"
#include "headroom/compare.h"
#include "writers.h"

namespace headroom {
namespace {

using detail::Cell;
using detail::Json;
using detail::number_column;
using detail::words_column;

std::string amount_text(const std::optional<Amount>& amount) {
  if (!amount) return "–";
  if (const auto* count = std::get_if<Integer>(&*amount)) return with_separators(*count);
  return fmt::format("{:.3f}", std::get<double>(*amount) * 1e3);
}

std::string difference_text(const ComparisonRow& row) {
  if (!row.difference) return "–";
  if (*row.difference == 0) return "0";
  if (std::abs(*row.difference) < 0.0005) return "<0.1 %";
  return fmt::format("{:+.1f} %", 100 * *row.difference);
}

std::string tolerance_text(const ComparisonRow& row) {
  if (!row.tolerance) return "–";
  return *row.tolerance == 0 ? "exact" : fmt::format("±{:.4g} %", 100 * *row.tolerance);
}

std::string result_text(const ComparisonRow& row) {
  switch (row.result) {
    case RowResult::pass:
      return "PASS";
    case RowResult::fail:
      return "FAIL";
    case RowResult::skip:
      break;
  }
  return row.reason.empty() ? "SKIP" : "SKIP: " + row.reason;
}

std::string drift_text(const DriftReport& drift) {
  return fmt::format(
      "products {:.2f}–{:.2f}, memory {:.2f}–{:.2f} times the calibration's time; the prediction "
      "is corrected for it",
      drift.before.compute, drift.after.compute, drift.before.memory, drift.after.memory);
}

detail::Document to_document(const Comparison& comparison) {
  detail::Table table;
  table.columns = {words_column("quantity", "Quantity"),  number_column("predicted", "Predicted"),
                   number_column("measured", "Measured"), number_column("difference", "Difference"),
                   number_column("tolerance", "Allowed"), words_column("result", "Result")};
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.predicted && !row.measured) continue;
    table.rows.push_back({row.title, amount_text(row.predicted), amount_text(row.measured),
                          difference_text(row), tolerance_text(row), result_text(row)});
  }
  detail::Document document;
  document.add_line(comparison.model, comparison.workload);
  document.add_line("machine", comparison.machine);
  document.blocks.emplace_back(std::move(table));
  if (comparison.drift) document.add_line("drift", drift_text(*comparison.drift));
  document.add_line("verdict", comparison.verdict);
  return document;
}

Cell amount_cell(const std::optional<Amount>& amount) {
  return amount ? std::visit([](auto value) { return Cell{value}; }, *amount) : Cell{};
}

/// Every row in base units: what CSV holds.
detail::Document to_row_table(std::span<const Comparison> comparisons) {
  detail::Table table;
  for (const char* key : {"model", "workload", "quantity", "predicted", "measured", "difference",
                          "tolerance", "result", "reason"}) {
    table.columns.push_back(words_column(key, ""));
  }
  for (const Comparison& comparison : comparisons) {
    for (const ComparisonRow& row : comparison.rows) {
      table.rows.push_back(
          {comparison.model, comparison.workload, row.quantity, amount_cell(row.predicted),
           amount_cell(row.measured), detail::cell_or_none(row.difference),
           detail::cell_or_none(row.tolerance), std::string(name_of(row.result)), row.reason});
    }
  }
  return {{std::move(table)}};
}

Json amount_json(const std::optional<Amount>& amount) {
  if (!amount) return nullptr;
  if (const auto* count = std::get_if<Integer>(&*amount)) return detail::json_integer(*count);
  return std::get<double>(*amount);
}

Json drift_json(const Drift& drift) {
  return {{"compute", drift.compute}, {"memory", drift.memory}};
}

Json to_json(const Comparison& comparison) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["model"] = comparison.model;
  json["workload"] = comparison.workload;
  json["rows"] = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    json["rows"].push_back({{"quantity", row.quantity},
                            {"predicted", amount_json(row.predicted)},
                            {"measured", amount_json(row.measured)},
                            {"difference", detail::json_or_null(row.difference)},
                            {"tolerance", detail::json_or_null(row.tolerance)},
                            {"result", name_of(row.result)},
                            {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)}});
  }
  json["result"] = name_of(comparison.result);
  json["verdict"] = comparison.verdict;
  json["drift"] = nullptr;
  if (comparison.drift) {
    json["drift"] = {{"before", drift_json(comparison.drift->before)},
                     {"after", drift_json(comparison.drift->after)}};
  }
  json["context"] = {{"machine", comparison.machine}};
  if (comparison.context) {
    json["context"]["cpu"] = comparison.context->cpu;
    json["context"]["threads"] = comparison.context->threads;
    json["context"]["backend"] = comparison.context->backend;
    json["context"]["compiler"] = comparison.context->compiler;
    json["context"]["load_average"] = comparison.context->load_average;
  }
  json["notes"] = comparison.notes;
  return json;
}

}  // namespace

std::string render(std::span<const Comparison> comparisons, const RenderOptions& options) {
  if (options.format == Format::csv) return detail::to_csv(to_row_table(comparisons));
  if (options.format == Format::json) {
    Json list = Json::array();
    for (const Comparison& comparison : comparisons) list.push_back(to_json(comparison));
    return detail::to_json_text(list.size() == 1 ? list.front() : list);
  }
  std::string text;
  for (const Comparison& comparison : comparisons) {
    text += (text.empty() ? "" : "\n") + detail::to_format(to_document(comparison), options);
  }
  return text;
}

}  // namespace headroom
