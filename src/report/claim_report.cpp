// ClaimReport -> Document and JSON: the claim as our figure plus or minus named terms.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "describe.h"
#include "factored.h"
#include "figure_name.h"
#include "headroom/claim.h"
#include "legend.h"
#include "schema_version.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// Explanations shown; all are in the JSON.
constexpr std::size_t kMostShown = 5;

std::string amount(Integer value, const std::string& unit) {
  return fmt::format("{} {}", with_separators(value), unit);
}

/// The equation from our figure to the claim, a row per term.
Table explanation_table(const ClaimReport& report, const ClaimExplanation& explanation) {
  Table table;
  table.columns = {words_column("term", "Claim ="),
                   words_column("formula", "Formula", Importance::optional),
                   number_column("value", "Value", {fmt::format("[{}]", report.unit)})};
  table.rows.push_back({"headroom's " + figure_name(report.subject),
                        format_factored(report.ours.formula), report.ours.value});
  Integer sum = report.ours.value;
  for (const ClaimTerm& term : explanation.terms) {
    table.rows.push_back(
        {(term.value > 0 ? "+ " : "− ") + term.name, format_factored(term.formula), term.value});
    sum = checked_add(sum, term.value);
  }
  if (!explanation.scale.name.empty()) {
    table.rows.push_back({"= sum", "", sum});
    ++table.total_rows;
  }
  const std::string last =
      explanation.scale.name.empty() ? "= claim" : "claim: " + explanation.scale.name;
  table.rows.push_back({last, "", report.claim});
  ++table.total_rows;
  return table;
}

Json explanation_json(const ClaimExplanation& explanation) {
  Json json{
      {"scale",
       {{"name", explanation.scale.name.empty() ? Json(nullptr) : Json(explanation.scale.name)},
        {"numerator", json_integer(explanation.scale.numerator)},
        {"denominator", json_integer(explanation.scale.denominator)}}},
      {"terms", Json::array()}};
  for (const ClaimTerm& term : explanation.terms) {
    json["terms"].push_back({{"name", term.name},
                             {"formula", format_factored(term.formula)},
                             {"value", json_integer(term.value)}});
  }
  return json;
}

}  // namespace

namespace {

/// A line for each letter of the shown formulas.
void add_legend(const ClaimReport& report, Document& document) {
  Legend legend;
  legend.note(format_factored(report.ours.formula));
  for (std::size_t i = 0; i < std::min(kMostShown, report.explanations.size()); ++i) {
    for (const ClaimTerm& term : report.explanations[i].terms) {
      legend.note(format_factored(term.formula));
    }
  }
  std::string label = "where";
  for (const Symbol symbol : legend.noted()) {
    document.add_line(std::exchange(label, ""), symbol_with_value(symbol, report.values));
  }
}

/// "24 sums of up to 4 of 15 terms, in every unit".
std::string describe_search(const ClaimReport& report) {
  const std::string sums =
      with_noun_grouped(static_cast<Integer>(report.sums_tried), "sum") + " of ";
  if (report.terms_tried < 2) {
    const char* const terms = report.terms_tried == 0 ? "no terms" : "at most 1 term";
    return fmt::format("{}{}, in every unit", sums, terms);
  }
  return fmt::format("{}up to {} of {} terms, in every unit", sums,
                     std::min<std::size_t>(4, report.terms_tried), report.terms_tried);
}

std::string claim_verdict(const ClaimReport& report) {
  const std::string searched = describe_search(report);
  const bool explained = !report.explanations.empty();
  if (explained && report.terms_tried == 0) return "equal to headroom's figure";
  if (!explained) return "no explanation among " + searched;
  const std::size_t more =
      report.explanations.size() - std::min(kMostShown, report.explanations.size());
  const std::string others =
      more == 0 ? "" : fmt::format("; {} more explanations of this length are in the JSON", more);
  return fmt::format("explained exactly, the shortest among {}{}", searched, others);
}

}  // namespace

Document to_document(const ClaimReport& report) {
  const ModelSpec& spec = report.model.spec;
  Document document;
  document.blocks = {Line{spec.name, describe(spec), LineRole::subject},
                     Line{"workload", describe(report.workload, spec, "")},
                     Line{"claim", amount(report.claim, report.unit)},
                     Line{"ours", amount(report.ours.value, report.unit)},
                     Line{"verdict", claim_verdict(report), LineRole::verdict,
                          outcome_of(!report.explanations.empty())}};
  add_legend(report, document);
  for (std::size_t i = 0; i < std::min(kMostShown, report.explanations.size()); ++i) {
    document.blocks.push_back(explanation_table(report, report.explanations[i]));
  }
  return document;
}

Json to_json(const ClaimReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "claim.schema.json";
  json["model"] = to_json(report.model);
  json["workload"] = to_json(report.workload, report.model.spec, std::nullopt);
  json["verdict"] = verdict_json(!report.explanations.empty(), claim_verdict(report));
  json["what"] = name_of(report.subject);
  json["unit"] = report.unit;
  json["claim"] = json_integer(report.claim);
  json["ours"] = json_integer(report.ours.value);
  json["formula"] = format_factored(report.ours.formula);
  json["explanations"] = Json::array();
  for (const ClaimExplanation& explanation : report.explanations) {
    json["explanations"].push_back(explanation_json(explanation));
  }
  json["terms_tried"] = report.terms_tried;
  json["sums_tried"] = report.sums_tried;
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
