// ExplainReport -> Document: formula, the same line with numbers, the result, aligned on "=".
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "factored.h"
#include "kv_cache_report.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// Symbols of all formulas, for the legend.
std::vector<Symbol> used_symbols(const ExplainReport& report) {
  std::vector<Symbol> used;
  const auto uses = [](const ExplainedFigure& figure, Symbol symbol) {
    return figure.formula.degree(symbol) > 0;
  };
  for (const SymbolInfo& symbol : symbols()) {
    const bool in_parts = std::ranges::any_of(
        report.parts, [&](const auto& part) { return uses(part, symbol.symbol); });
    if (in_parts || uses(report.whole, symbol.symbol)) used.push_back(symbol.symbol);
  }
  return used;
}

std::string legend_entry(const ExplainReport& report, Symbol symbol) {
  const SymbolInfo& about = info(symbol);
  std::string text =
      fmt::format("{} = {}", about.unicode, with_separators(report.values.get(symbol).value_or(0)));
  text += fmt::format(" {}", about.key);
  if (!about.definition.empty()) text += fmt::format(" ({})", about.definition);
  return text;
}

std::string relation_text(const Relation& relation) {
  const Expr left = Expr::from_terms({{1, relation.product}});
  return fmt::format("{} = {}", format(left), format(relation.replacement));
}

void add_legend(const ExplainReport& report, Document& document) {
  std::string label = "where";
  for (const Symbol symbol : used_symbols(report)) {
    document.blocks.push_back(Line{std::exchange(label, ""), legend_entry(report, symbol)});
  }
  std::vector<std::string> related;
  for (const Relation& relation : report.relations) {
    const bool about_model = relation.replacement.constant() == std::nullopt;
    if (about_model) related.push_back(relation_text(relation));
  }
  if (!related.empty()) {
    document.blocks.push_back(Line{"here", fmt::format("{}", fmt::join(related, ", "))});
  }
}

Formula formula_of(const ExplainReport& report, const ExplainedFigure& figure) {
  Formula formula{figure.name, {format_factored(figure.formula)}};
  const std::string numbers = format_factored_with_values(figure.formula, report.values);
  if (numbers != formula.steps.back()) formula.steps.push_back(numbers);
  const std::string result = fmt::format("{} {}", with_separators(figure.value), report.unit);
  if (to_string(figure.value) == formula.steps.back()) formula.steps.pop_back();
  formula.steps.push_back(result);
  return formula;
}

/// (rule − exact) / exact in percent; no value if the exact figure is 0.
Cell difference_percent(const RuleOfThumb& rule) {
  if (rule.exact == 0) return {};
  return 100.0 * static_cast<double>(rule.value - rule.exact) / static_cast<double>(rule.exact);
}

/// The distinct sources of the rules.
std::vector<std::string> distinct_sources(const ExplainReport& report) {
  std::vector<std::string> result;
  for (const RuleOfThumb& rule : report.rules) {
    if (std::ranges::find(result, rule.source) == result.end()) result.push_back(rule.source);
  }
  return result;
}

/// "[1]" for the first source.
std::string source_mark(const std::vector<std::string>& sources, const std::string& source) {
  return fmt::format("[{}]", std::ranges::find(sources, source) - sources.begin() + 1);
}

Table rules_table(const ExplainReport& report) {
  const std::string unit = fmt::format("[{}]", report.unit);
  Table table;
  table.columns = {words_column("rule", "Rule of thumb"),
                   number_column("value", "Rule", {unit}),
                   number_column("exact", "Exact", {unit}),
                   number_column("difference_percent", "Difference", {"[%]", 2}),
                   words_column("stands_for", "Estimates", Importance::optional),
                   words_column("source", "Source")};
  const std::vector<std::string> marked = distinct_sources(report);
  for (const RuleOfThumb& rule : report.rules) {
    table.rows.push_back({rule.name, rule.value, rule.exact, difference_percent(rule),
                          rule.estimates, source_mark(marked, rule.source)});
  }
  return table;
}

/// The table of rules, followed by the sources that its marks refer to.
void add_rules(const ExplainReport& report, Document& document) {
  if (report.rules.empty()) return;
  document.blocks.push_back(rules_table(report));
  const std::vector<std::string> marked = distinct_sources(report);
  for (const std::string& source : marked) {
    document.blocks.push_back(Line{source_mark(marked, source), source});
  }
}

void add_ffn_crossover(const ExplainReport& report, Document& document) {
  if (!report.ffn_crossover) return;
  const FfnCrossover& crossover = *report.ffn_crossover;
  const std::string inequality =
      fmt::format("{} > {}", format(crossover.attention), format(crossover.ffn));
  document.add_line("attention", crossover.seq_len
                                     ? fmt::format("overtakes the FFN at s = {}: {}",
                                                   with_separators(*crossover.seq_len), inequality)
                                     : fmt::format("never overtakes the FFN: {}", inequality));
}

/// Memory that the engine's policy reserves, and the source of its rule.
void add_policy(const ExplainReport& report, Document& document) {
  if (!report.kv_cache || !has_policy(*report.kv_cache)) return;
  const KvCacheUse& use = *report.kv_cache;
  document.blocks.push_back(Line{"reserved", describe_reserved(use)});
  document.blocks.push_back(Line{"", std::string(info(use.policy).source)});
  document.blocks.push_back(kv_cache_table(use));
}

}  // namespace

Document to_figure_table(const ExplainReport& report) {
  Table table;
  table.columns = {words_column("name", "Figure"), words_column("formula", "Formula"),
                   number_column("value", "Value", {fmt::format("[{}]", report.unit)})};
  const auto add = [&](const ExplainedFigure& figure) {
    table.rows.push_back({figure.name, format_factored(figure.formula), figure.value});
  };
  std::ranges::for_each(report.parts, add);
  add(report.whole);
  table.total_rows = 1;
  return {{std::move(table)}};
}

Document to_document(const ExplainReport& report) {
  const ModelSpec& spec = report.model.spec;
  const std::string cache_type = report.kv_cache ? describe_format(*report.kv_cache) : "";
  Document document;
  document.blocks = {Line{spec.name, describe(spec)},
                     Line{"workload", describe(report.workload, spec, cache_type)}};
  add_legend(report, document);
  document.blocks.push_back(formula_of(report, report.whole));
  for (const ExplainedFigure& part : report.parts) {
    document.blocks.push_back(formula_of(report, part));
  }
  add_ffn_crossover(report, document);
  add_rules(report, document);
  add_policy(report, document);
  return document;
}

}  // namespace headroom::detail
