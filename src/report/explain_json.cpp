// ExplainReport -> JSON (reports/explain.schema.json).
#include "describe.h"
#include "factored.h"
#include "kv_cache_report.h"
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Json figure_json(const ExplainReport& report, const ExplainedFigure& figure) {
  Json json;
  json["name"] = figure.name;
  json["formula"] = format_factored(figure.formula);
  json["formula_ascii"] = format(figure.formula, Notation::ascii);
  json["formula_latex"] = format(figure.formula, Notation::latex);
  json["with_numbers"] = format_factored_with_values(figure.formula, report.values);
  json["value"] = json_integer(figure.value);
  return json;
}

Json ffn_crossover_json(const std::optional<FfnCrossover>& crossover) {
  if (!crossover) return nullptr;
  return {{"from", crossover->seq_len ? json_integer(*crossover->seq_len) : Json(nullptr)},
          {"attention", format(crossover->attention)},
          {"ffn", format(crossover->ffn)}};
}

}  // namespace

Json to_json(const ExplainReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "explain.schema.json";
  json["model"] = to_json(report.model);
  json["workload"] = to_json(report.workload, report.model.spec, report.kv_cache);
  json["what"] = name_of(report.subject);
  json["unit"] = report.unit;
  json["symbols"] = Json::array();
  for (const SymbolInfo& symbol : symbols()) {
    const auto value = report.values.get(symbol.symbol);
    if (!value || *value == 0) continue;  // a size that this model or workload lacks
    json["symbols"].push_back(
        {{"symbol", symbol.unicode}, {"name", symbol.key}, {"value", json_integer(*value)}});
  }
  json["whole"] = figure_json(report, report.whole);
  json["parts"] = Json::array();
  for (const ExplainedFigure& part : report.parts) {
    json["parts"].push_back(figure_json(report, part));
  }
  json["rules_of_thumb"] = Json::array();
  for (const RuleOfThumb& rule : report.rules) {
    const Json difference =
        rule.exact == 0
            ? Json(nullptr)
            : Json(static_cast<double>(rule.value - rule.exact) / static_cast<double>(rule.exact));
    json["rules_of_thumb"].push_back({{"rule", rule.name},
                                      {"stands_for", rule.estimates},
                                      {"value", json_integer(rule.value)},
                                      {"exact", json_integer(rule.exact)},
                                      {"relative_difference", difference},
                                      {"source", rule.source},
                                      {"differences", rule.differences}});
  }
  json["kv_cache"] = report.kv_cache ? to_json(*report.kv_cache) : Json(nullptr);
  json["attention_passes_ffn"] = ffn_crossover_json(report.ffn_crossover);
  json["cache_passes_weights"] =
      report.cache_passes_weights ? json_integer(*report.cache_passes_weights) : Json(nullptr);
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
