// ExplainReport -> Document: formula, the same line with numbers, the result, aligned on "=".
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "describe.h"
#include "factored.h"
#include "ffn_crossover.h"
#include "kv_cache_report.h"
#include "legend.h"
#include "mixer_sizes.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// Letters of a rule's name that its formula has, too: the literature's N and D are no symbols.
void note_letters(const RuleOfThumb& rule, Legend& legend) {
  for (const Symbol symbol : symbols_in(rule.name)) {
    if (rule.formula.degree(symbol) > 0) legend.note(format(symbol));
  }
}

/// Symbols of all formulas and rules, for the legend.
Legend legend_of(const ExplainReport& report) {
  Legend legend;
  legend.note(format(report.whole.formula));
  for (const ExplainedFigure& part : report.parts) legend.note(format(part.formula));
  for (const RuleOfThumb& rule : report.rules) note_letters(rule, legend);
  if (report.ffn_crossover) legend.note(describe(*report.ffn_crossover));
  return legend;
}

std::string relation_text(const Relation& relation) {
  const Expr left = Expr::from_terms({{1, relation.product}});
  return fmt::format("{} = {}", format(left), format(relation.replacement));
}

/// The relations that the formulas use, and the names of letters that occur in these alone.
void add_relations(const ExplainReport& report, Legend legend, Document& document) {
  std::vector<std::string> related;
  for (const Relation& relation : report.relations) {
    const bool about_model = relation.replacement.constant() == std::nullopt;
    if (about_model) related.push_back(relation_text(relation));
  }
  if (related.empty()) return;
  const std::vector<Symbol> with_values = legend.noted();
  const std::string all = legend.note(fmt::format("{}", fmt::join(related, ", ")));
  document.add_line("here", all);
  std::vector<Symbol> others = legend.noted();
  std::erase_if(others, [&](Symbol symbol) {
    return std::ranges::find(with_values, symbol) != with_values.end();
  });
  add_lines(legend_lines("", others), document);
}

void add_legend(const ExplainReport& report, Document& document) {
  const Legend legend = legend_of(report);
  std::string label = "where";
  for (const Symbol symbol : legend.noted()) {
    document.blocks.push_back(
        Line{std::exchange(label, ""), symbol_with_value(symbol, report.values)});
  }
  add_relations(report, legend, document);
}

/// The sizes behind numbers of the formulas, which no symbol names.
void add_sizes(const ModelSpec& spec, Document& document) {
  std::string label = "numbers";
  for (std::string& text : mixer_sizes(spec)) {
    document.add_line(std::exchange(label, ""), std::move(text));
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

/// "[1]" for the first rule.
std::string mark(std::size_t rule) { return fmt::format("[{}]", rule + 1); }

Table rules_table(const ExplainReport& report) {
  const std::string unit = fmt::format("[{}]", report.unit);
  Table table;
  table.columns = {words_column("rule", "Rule of thumb"),
                   number_column("value", "Rule", {unit}),
                   number_column("exact", "Exact", {unit}),
                   number_column("difference_percent", "Difference", {"[%]", 2}),
                   words_column("stands_for", "Estimates", Importance::optional),
                   words_column("source", "Source")};
  for (std::size_t i = 0; i < report.rules.size(); ++i) {
    const RuleOfThumb& rule = report.rules[i];
    table.rows.push_back(
        {rule.name, rule.value, rule.exact, difference_percent(rule), rule.estimates, mark(i)});
  }
  return table;
}

/// The table of rules, followed by the source of each, and why it differs.
void add_rules(const ExplainReport& report, Document& document) {
  if (report.rules.empty()) return;
  document.blocks.push_back(rules_table(report));
  for (std::size_t i = 0; i < report.rules.size(); ++i) {
    const RuleOfThumb& rule = report.rules[i];
    document.blocks.push_back(Line{mark(i), rule.source});
    if (rule.value == rule.exact) continue;
    const std::string why = fmt::format("differs by {}", fmt::join(rule.differences, "; "));
    document.blocks.push_back(Line{"", why});
  }
}

void add_ffn_crossover(const ExplainReport& report, Document& document) {
  if (!report.ffn_crossover) return;
  const std::string& with = report.ffn_crossover->with;
  const std::string costs = with.empty() ? "" : fmt::format("with {} ", with);
  document.add_line("attention", costs + describe(*report.ffn_crossover));
}

/// Memory that the engine holds and reserves, and the source of its rule.
void add_policy(const ExplainReport& report, Document& document) {
  if (!report.kv_cache || !has_policy(*report.kv_cache)) return;
  const KvCacheUse& use = *report.kv_cache;
  document.blocks.push_back(Line{"steady state", describe_steady(use)});
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
  document.blocks = {Line{spec.name, describe(spec), LineRole::subject},
                     Line{"workload", describe(report.workload, spec, cache_type)}};
  add_legend(report, document);
  add_sizes(spec, document);
  document.blocks.push_back(formula_of(report, report.whole));
  for (const ExplainedFigure& part : report.parts) {
    document.blocks.push_back(formula_of(report, part));
  }
  add_ffn_crossover(report, document);
  if (report.cache_passes_weights) {
    document.add_line("cache", fmt::format("outgrows the weights at t = {}",
                                           with_separators(*report.cache_passes_weights)));
  }
  add_rules(report, document);
  add_policy(report, document);
  return document;
}

}  // namespace headroom::detail
