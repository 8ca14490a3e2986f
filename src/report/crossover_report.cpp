// CrossoverReport -> Document and JSON.
#include <fmt/format.h>

#include "describe.h"
#include "factored.h"
#include "headroom/crossover.h"
#include "legend.h"
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

std::string letter(const Crossover& crossover) {
  return std::string(info(crossover.symbol).unicode);
}

/// "s > 34·d/(5·h)"; the inequality itself if it is not solved; empty without formulas.
std::string condition(const Crossover& crossover) {
  if (crossover.left.is_zero()) return "";
  if (!crossover.numerator || !crossover.denominator) {
    return fmt::format("{} > {}", format_factored(crossover.left),
                       format_factored(crossover.right));
  }
  const Expr above = Expr::from_terms({*crossover.numerator});
  const Expr below = Expr::from_terms({*crossover.denominator});
  // Each letter of a fraction in lowest terms is above or below the line.
  const std::string top = format(above);
  const std::string bottom = format(below);
  if (below.constant() == Integer{1}) return fmt::format("{} > {}", letter(crossover), top);
  const bool one_factor = below.constant().has_value();
  const std::string divisor = one_factor ? bottom : "(" + bottom + ")";
  return fmt::format("{} > {}/{}", letter(crossover), top, divisor);
}

std::string number(const Crossover& crossover) {
  if (!crossover.at) return "never";
  return fmt::format("{} = {}", letter(crossover), with_separators(*crossover.at));
}

/// The reason for a table without rows.
std::string why_none(const ModelSpec& spec) {
  if (spec.reads_two_sequences()) return "the costs grow with two lengths, not with one";
  return "the model has no attention beside an FFN, saves no scores, and no cache of it grows";
}

}  // namespace

Document to_document(const CrossoverReport& report) {
  const ModelSpec& spec = report.model.spec;
  Table table;
  table.columns = {words_column("left", "Cost"), words_column("right", "exceeds"),
                   words_column("from", "From"),
                   words_column("condition", "By symbol", Importance::optional)};
  Legend legend;
  for (const Crossover& crossover : report.crossovers) {
    table.rows.push_back({crossover.left_name, crossover.right_name, number(crossover),
                          legend.note(condition(crossover))});
  }
  Document document;
  document.blocks = {Line{spec.name, describe(spec), LineRole::subject}};
  std::string label = "where";
  for (const Symbol symbol : legend.noted()) {
    document.blocks.push_back(
        Line{std::exchange(label, ""), symbol_with_value(symbol, report.values)});
  }
  document.blocks.emplace_back(std::move(table));
  if (report.crossovers.empty()) document.add_line("none", why_none(spec));
  for (const Crossover& crossover : report.crossovers) {
    if (!crossover.source.empty()) document.add_line(crossover.left_name, crossover.source);
  }
  return document;
}

Json to_json(const CrossoverReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "crossovers.schema.json";
  json["model"] = to_json(report.model);
  json["workload"] = to_json(report.workload, report.model.spec, report.kv_cache);
  json["crossovers"] = Json::array();
  for (const Crossover& crossover : report.crossovers) {
    const std::string formula = condition(crossover);
    json["crossovers"].push_back(
        {{"left", crossover.left_name},
         {"right", crossover.right_name},
         {"unit", crossover.unit},
         {"symbol", letter(crossover)},
         {"condition", formula.empty() ? Json(nullptr) : Json(formula)},
         {"at", crossover.at ? json_integer(*crossover.at) : Json(nullptr)},
         {"source", crossover.source.empty() ? Json(nullptr) : Json(crossover.source)}});
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
