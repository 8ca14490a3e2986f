// Derivation -> Document and JSON: one table per kind of layer, with subtotals.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "describe.h"
#include "factored.h"
#include "figure_name.h"
#include "headroom/derivation.h"
#include "kv_cache_report.h"
#include "legend.h"
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

using MeasuredByPath = std::map<std::string, const MeasuredStep*>;

MeasuredByPath by_path(const Derivation& derivation) {
  MeasuredByPath measured;
  for (const MeasuredStep& step : derivation.measured) measured.emplace(step.path, &step);
  return measured;
}

std::string verdict(const MeasuredStep& step) {
  if (step.counted == step.derived) return "equal";
  return fmt::format("{} counted", with_separators(step.counted));
}

/// Result of the run for `path`; empty if the run did not count it.
Cell measured_cell(const MeasuredByPath& measured, const std::string& path) {
  const auto found = measured.find(path);
  if (found == measured.end()) return {};
  return verdict(*found->second);
}

/// Notes the letters of "b·s·d × 2 B", or those within brackets: letters before them name operands.
void note_sizes(const std::string& operands, Legend& legend) {
  if (operands.find('[') == std::string::npos) {
    legend.note(operands.substr(0, operands.find(" × ")));
    return;
  }
  for (std::size_t at = operands.find('['); at != std::string::npos; at = operands.find('[', at)) {
    const std::size_t end = operands.find(']', at);
    legend.note(operands.substr(at, end - at));
    at = end;
  }
}

/// Result of all steps of a group; empty if the run counted none of them.
Cell group_cell(const MeasuredByPath& measured, const DerivationGroup& group) {
  Cell cell;
  for (const DerivationStep& step : group.steps) {
    const auto found = measured.find(step.path);
    if (found == measured.end()) continue;
    if (found->second->counted != found->second->derived) return std::string("differs");
    cell = "equal";
  }
  return cell;
}

std::string count_of_layers(const DerivationBlock& block) {
  return fmt::format("{} × {}", with_separators(block.times.value), block.path);
}

/// Steps of one layer, subtotals, and the sums of one and of all layers.
Table block_table(const Derivation& derivation, const DerivationBlock& block, Legend& legend) {
  Table table;
  table.columns = {words_column("step", "Step"),
                   words_column("operands", "Operands", Importance::optional),
                   words_column("formula", "Formula"),
                   number_column("value", "Value", {fmt::format("[{}]", derivation.unit)})};
  const bool is_measured = !derivation.measured.empty() && derivation.subject == Subject::flops;
  if (is_measured) table.columns.push_back(words_column("measured", "Measured"));
  const MeasuredByPath measured = by_path(derivation);
  const auto add = [&](std::string name, std::string operands, const Expr& formula, Integer value,
                       Cell run = std::string()) {
    note_sizes(operands, legend);
    std::vector<Cell> row{std::move(name), std::move(operands),
                          legend.note(format_factored(formula)), value};
    if (is_measured) row.push_back(std::move(run));
    table.rows.push_back(std::move(row));
  };
  for (const DerivationGroup& group : block.groups) {
    for (const DerivationStep& step : group.steps) {
      add("  " + step.name, step.operands, step.formula, step.value,
          measured_cell(measured, step.path));
    }
    const bool repeats = group.steps.size() == 1 && block.groups.size() > 1;
    if (repeats) continue;
    add("= " + group.name, "", group.subtotal.formula, group.subtotal.value,
        group_cell(measured, group));
  }
  table.total_rows = 0;
  if (block.groups.size() > 1) {
    add(block.times.value > 1 ? "one layer" : "sum", "", block.one.formula, block.one.value);
    ++table.total_rows;
  }
  if (block.times.value > 1) {
    add(fmt::format("× {}", format(block.times.formula)), "", block.all.formula, block.all.value);
    ++table.total_rows;
  }
  return table;
}

Formula total_formula(const Derivation& derivation) {
  const ExplainedFigure& total = derivation.total;
  return {figure_name(derivation.subject),
          {format_factored(total.formula),
           format_factored_with_values(total.formula, derivation.values),
           fmt::format("{} {}", with_separators(total.value), derivation.unit)}};
}

void add_checks(const Derivation& derivation, Document& document) {
  document.add_verdict("check", fmt::format("the steps sum to {}: equal to the count of analyze",
                                            with_separators(derivation.reported)));
  for (const MeasuredStep& step : derivation.measured) {
    if (!step.path.empty()) continue;
    document.add_line("measured", fmt::format("{} {} in a run: {}", with_separators(step.counted),
                                              derivation.unit, verdict(step)));
  }
}

Json figure_json(const Derivation& derivation, const ExplainedFigure& figure) {
  return {{"formula", format_factored(figure.formula)},
          {"formula_latex", format(figure.formula, Notation::latex)},
          {"with_numbers", format_factored_with_values(figure.formula, derivation.values)},
          {"value", json_integer(figure.value)}};
}

Json step_json(const Derivation& derivation, const DerivationStep& step) {
  return {{"name", step.name},
          {"path", step.path},
          {"operands", step.operands},
          {"product", format(step.product)},
          {"formula", format(step.formula)},
          {"with_numbers", format_with_values(step.formula, derivation.values)},
          {"value", json_integer(step.value)}};
}

Json block_json(const Derivation& derivation, const DerivationBlock& block) {
  Json json{{"path", block.path},
            {"times", json_integer(block.times.value)},
            {"groups", Json::array()},
            {"one", figure_json(derivation, block.one)},
            {"all", figure_json(derivation, block.all)}};
  for (const DerivationGroup& group : block.groups) {
    Json steps = Json::array();
    for (const DerivationStep& step : group.steps) steps.push_back(step_json(derivation, step));
    json["groups"].push_back({{"name", group.name},
                              {"steps", std::move(steps)},
                              {"subtotal", figure_json(derivation, group.subtotal)}});
  }
  return json;
}

}  // namespace

Document to_document(const Derivation& derivation) {
  const ModelSpec& spec = derivation.model.spec;
  Document steps;
  Legend legend;
  for (const DerivationBlock& block : derivation.blocks) {
    steps.blocks.push_back(Heading{count_of_layers(block)});
    steps.blocks.push_back(block_table(derivation, block, legend));
  }
  legend.note(format_factored(derivation.total.formula));
  Document document;
  document.blocks = {Line{spec.name, describe(spec), LineRole::subject},
                     Line{"workload", describe(derivation.workload, spec, "")}};
  std::string label = "where";
  for (const Symbol symbol : legend.noted()) {
    document.blocks.push_back(
        Line{std::exchange(label, ""), symbol_with_value(symbol, derivation.values)});
  }
  document.blocks.insert(document.blocks.end(), steps.blocks.begin(), steps.blocks.end());
  document.blocks.push_back(total_formula(derivation));
  add_checks(derivation, document);
  for (const std::string& reason : derivation.reasons) document.add_line("note", reason);
  return document;
}

Document to_step_table(const Derivation& derivation) {
  Table table;
  table.columns = {words_column("block", "Block"),       number_column("times", "Times"),
                   words_column("group", "Group"),       words_column("step", "Step"),
                   words_column("operands", "Operands"), words_column("formula", "Formula"),
                   number_column("value", "Value")};
  for (const DerivationBlock& block : derivation.blocks) {
    for (const DerivationGroup& group : block.groups) {
      for (const DerivationStep& step : group.steps) {
        table.rows.push_back({block.path, block.times.value, group.name, step.name, step.operands,
                              format(step.formula), step.value});
      }
    }
  }
  return {{std::move(table)}};
}

Json to_json(const Derivation& derivation) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "derivation.schema.json";
  json["model"] = to_json(derivation.model);
  json["workload"] = to_json(derivation.workload, derivation.model.spec, std::nullopt);
  json["what"] = name_of(derivation.subject);
  json["unit"] = derivation.unit;
  json["blocks"] = Json::array();
  for (const DerivationBlock& block : derivation.blocks) {
    json["blocks"].push_back(block_json(derivation, block));
  }
  json["total"] = figure_json(derivation, derivation.total);
  json["reported"] = json_integer(derivation.reported);
  json["measured"] = Json::array();
  for (const MeasuredStep& step : derivation.measured) {
    json["measured"].push_back({{"path", step.path.empty() ? Json(nullptr) : Json(step.path)},
                                {"derived", json_integer(step.derived)},
                                {"counted", json_integer(step.counted)},
                                {"equal", step.derived == step.counted}});
  }
  json["reasons"] = derivation.reasons;
  json["notes"] = derivation.notes;
  return json;
}

}  // namespace headroom::detail
