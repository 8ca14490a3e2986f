// Comparison -> table and JSON (reports/compare.schema.json).
#include <fmt/format.h>

#include <array>

#include "describe.h"
#include "headroom/compare.h"
#include "writers.h"

namespace headroom {
namespace {

using detail::Alignment;
using detail::Cell;
using detail::Importance;
using detail::Json;

/// Words for a quantity, with its unit, as the table has them.
std::string title_of(const std::string& quantity) {
  struct Title {
    Quantity quantity;
    const char* text;
  };
  constexpr std::array kTitles{Title{Quantity::parameters, "parameters"},
                               Title{Quantity::matrix_flops, "matrix FLOPs"},
                               Title{Quantity::weight_bytes, "weights [B]"},
                               Title{Quantity::kv_cache_bytes, "KV-cache [B]"},
                               Title{Quantity::peak_activation_bytes, "peak activations [B]"},
                               Title{Quantity::rss_peak_bytes, "resident peak [B]"},
                               Title{Quantity::time_s, "time [ms]"},
                               Title{Quantity::ttft_s, "TTFT [ms]"},
                               Title{Quantity::tpot_s, "TPOT [ms]"}};
  for (const Title& title : kTitles) {
    if (quantity == name_of(title.quantity)) return title.text;
  }
  const auto colon = quantity.find(':');
  return colon == std::string::npos ? quantity : quantity.substr(colon + 1) + " [ms]";
}

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
  const auto column = [](const char* key, const char* title, Alignment alignment) {
    return detail::Column{key, title, "", alignment, 1, 0, Importance::essential};
  };
  table.columns = {column("quantity", "Quantity", Alignment::left),
                   column("predicted", "Predicted", Alignment::right),
                   column("measured", "Measured", Alignment::right),
                   column("difference", "Difference", Alignment::right),
                   column("tolerance", "Allowed", Alignment::right),
                   column("result", "Result", Alignment::left)};
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.predicted && !row.measured) continue;
    table.rows.push_back({title_of(row.quantity), amount_text(row.predicted),
                          amount_text(row.measured), difference_text(row), tolerance_text(row),
                          result_text(row)});
  }
  detail::Document document;
  document.blocks.push_back(detail::Line{comparison.model, comparison.title});
  document.blocks.push_back(detail::Line{"machine", comparison.machine});
  document.blocks.emplace_back(std::move(table));
  if (comparison.drift) {
    document.blocks.push_back(detail::Line{"drift", drift_text(*comparison.drift)});
  }
  document.blocks.push_back(detail::Line{"verdict", comparison.verdict});
  return document;
}

Json amount_json(const std::optional<Amount>& amount) {
  if (!amount) return nullptr;
  if (const auto* count = std::get_if<Integer>(&*amount)) return detail::json_integer(*count);
  return std::get<double>(*amount);
}

Json optional_json(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json drift_json(const Drift& drift) {
  return {{"compute", drift.compute}, {"memory", drift.memory}};
}

Json to_json(const Comparison& comparison) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["model"] = comparison.model;
  json["workload"] = comparison.title;
  json["rows"] = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    json["rows"].push_back({{"quantity", row.quantity},
                            {"predicted", amount_json(row.predicted)},
                            {"measured", amount_json(row.measured)},
                            {"difference", optional_json(row.difference)},
                            {"tolerance", optional_json(row.tolerance)},
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

std::string render(const Comparison& comparison, const RenderOptions& options) {
  switch (options.format) {
    case Format::json:
      return detail::to_json_text(to_json(comparison));
    case Format::csv:
      return detail::to_csv(to_document(comparison));
    case Format::markdown:
      return detail::to_markdown(to_document(comparison));
    case Format::table:
      break;
  }
  return detail::to_text(to_document(comparison), {options.width, options.colour});
}

}  // namespace headroom
