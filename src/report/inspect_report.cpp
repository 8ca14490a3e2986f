// Inspection -> Document and JSON (reports/inspect.schema.json).
//
//   gpt2            safetensors · 1 file · 160 tensors · 522.71 MiB
//   parameters      124,439,808, equal to the config
//   bits per weight 32.00
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "headroom/model_source.h"
#include "schema_version.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

// One screen; JSON and CSV list all.
constexpr std::size_t kShownComponents = 40;
constexpr std::size_t kShownProblems = 10;

Cell bits_cell(const TensorTotals& totals) {
  const auto bits = totals.bits_per_value();
  return bits ? Cell{*bits} : Cell{};
}

Column bytes_column(Integer largest) {
  return number_column("bytes", "Bytes", in_unit(byte_unit(largest), 2));
}

Column tensors_column(Importance importance) {
  return number_column("tensors", "Tensors", {}, importance);
}

Column bits_column() { return number_column("bits_per_value", "Bits", {"[/value]", 2}); }

void add_totals(std::vector<Cell>& cells, const TensorTotals& totals) {
  cells.insert(cells.end(),
               {Integer{totals.tensors}, totals.values, totals.bytes, bits_cell(totals)});
}

std::vector<Cell> component_cells(const ComponentRow& row, bool has_categories) {
  std::vector<Cell> cells{row.component};
  if (has_categories) cells.emplace_back(row.category);
  add_totals(cells, row.totals);
  return cells;
}

/// The largest components in their order, and the sum of the others.
std::vector<ComponentRow> shown_components(const Inspection& inspection, std::size_t most) {
  const auto& all = inspection.components;
  if (all.size() <= most) return all;
  std::vector<Integer> sizes;
  sizes.reserve(all.size());
  for (const ComponentRow& row : all) sizes.push_back(row.totals.bytes);
  const auto nth = sizes.begin() + static_cast<std::ptrdiff_t>(most - 1);
  std::ranges::nth_element(sizes, nth, std::ranges::greater{});
  std::vector<ComponentRow> rows;
  ComponentRow others;
  for (const ComponentRow& row : all) {
    if (row.totals.bytes >= *nth && rows.size() < most) {
      rows.push_back(row);
    } else {
      others.totals += row.totals;
    }
  }
  others.component = fmt::format("{} others", all.size() - rows.size());
  rows.push_back(std::move(others));
  return rows;
}

Table extra_table(const Inspection& inspection) {
  Table table;
  table.columns = {words_column("kind", "Kind"), tensors_column(Importance::essential),
                   number_column("values", "Values"), words_column("example", "Example")};
  for (const ExtraRow& row : inspection.extras) {
    table.rows.push_back({row.kind, Integer{row.totals.tensors}, row.totals.values, row.example});
  }
  return table;
}

std::string parameters_text(const Inspection& inspection) {
  std::string found = with_separators(inspection.weights.values);
  if (!inspection.reconciliation) return found;
  const Integer expected = inspection.reconciliation->expected_parameters;
  if (inspection.weights.values == expected) return found + ", equal to the config";
  return fmt::format("{}, but the config gives {}", found, with_separators(expected));
}

std::string verdict(const Inspection& inspection) {
  if (!inspection.config_error.empty()) return "config not readable: " + inspection.config_error;
  if (!inspection.reconciliation) return "–";
  const std::int64_t count = inspection.reconciliation->problem_count;
  if (count == 0) return "every tensor belongs to a weight, and every weight has a tensor";
  return with_noun(count, "difference") + " from the config";
}

/// Empty for files without a config, which state no weights to look for.
std::optional<bool> passed(const Inspection& inspection) {
  if (inspection.config_error.empty() && !inspection.reconciliation) return std::nullopt;
  return inspection.is_explained();
}

void add_problems(const Reconciliation& reconciliation, Document& document) {
  Table table;
  table.columns = {words_column("problem", "Problem"), words_column("tensor", "Tensor"),
                   words_column("detail", "")};
  for (const Problem& problem : reconciliation.problems) {
    if (table.rows.size() == kShownProblems) break;
    table.rows.push_back({std::string(name_of(problem.kind)), problem.tensor, problem.detail});
  }
  const auto shown = static_cast<std::int64_t>(table.rows.size());
  if (shown == 0) return;
  document.blocks.emplace_back(Heading{"Unexplained"});
  document.blocks.emplace_back(std::move(table));
  if (reconciliation.problem_count == shown) return;
  document.blocks.push_back(
      Line{"", fmt::format("… and {} more", reconciliation.problem_count - shown)});
}

Json row_json(const char* key, const std::string& name, const TensorTotals& totals) {
  Json json = {{key, name}};
  json.update(totals_json(totals));
  return json;
}

Json reconciliation_json(const Inspection& inspection) {
  if (!inspection.reconciliation) return nullptr;
  const Reconciliation& reconciliation = *inspection.reconciliation;
  Json json;
  json["model_type"] = reconciliation.model.spec.model_type;
  json["architecture"] = reconciliation.model.spec.architecture;
  json["config"] = reconciliation.model.source;
  json["expected_parameters"] = json_integer(reconciliation.expected_parameters);
  json["found_parameters"] = json_integer(reconciliation.found_parameters);
  json["unexplained"] = reconciliation.problem_count;
  json["problems"] = Json::array();
  for (const Problem& problem : reconciliation.problems) {
    json["problems"].push_back(
        {{"kind", name_of(problem.kind)}, {"tensor", problem.tensor}, {"detail", problem.detail}});
  }
  return json;
}

}  // namespace

Table component_table(const Inspection& inspection, std::size_t most) {
  const bool has_categories = inspection.reconciliation.has_value();
  Table table;
  table.columns = {words_column("component", has_categories ? "Component" : "Name")};
  if (has_categories) table.columns.push_back(words_column("category", "Category"));
  table.columns.push_back(tensors_column(Importance::optional));
  table.columns.push_back(number_column("parameters", "Parameters"));
  table.columns.push_back(bytes_column(inspection.weights.bytes));
  table.columns.push_back(bits_column());
  for (const ComponentRow& row : shown_components(inspection, most)) {
    table.rows.push_back(component_cells(row, has_categories));
  }
  table.rows.push_back(component_cells({"", "total", inspection.weights}, has_categories));
  table.total_rows = 1;
  return table;
}

Table storage_type_table(const Inspection& inspection) {
  Table table;
  table.columns = {words_column("type", "Type"), tensors_column(Importance::optional),
                   number_column("values", "Values"), bytes_column(inspection.all.bytes),
                   bits_column()};
  for (const TypeRow& row : inspection.types) {
    std::vector<Cell> cells{row.type};
    add_totals(cells, row.totals);
    table.rows.push_back(std::move(cells));
  }
  std::vector<Cell> total{std::string("total")};
  add_totals(total, inspection.all);
  table.rows.push_back(std::move(total));
  table.total_rows = 1;
  return table;
}

Json totals_json(const TensorTotals& totals) {
  const auto bits = totals.bits_per_value();
  return {{"tensors", totals.tensors},
          {"values", json_integer(totals.values)},
          {"bytes", json_integer(totals.bytes)},
          {"bits_per_value", bits ? Json(*bits) : Json(nullptr)}};
}

Json types_json(const Inspection& inspection) {
  Json json = Json::array();
  for (const TypeRow& row : inspection.types)
    json.push_back(row_json("type", row.type, row.totals));
  return json;
}

Document to_component_table(const Inspection& inspection) {
  Document document;
  document.blocks.emplace_back(component_table(inspection, inspection.components.size()));
  return document;
}

Document to_document(const Inspection& inspection) {
  Document document;
  const auto add = [&](std::string label, std::string text) {
    document.blocks.push_back(Line{std::move(label), std::move(text)});
  };
  add(inspection.path,
      fmt::format("{} · {} · {} · {}", name_of(inspection.format),
                  with_noun(static_cast<Integer>(inspection.files), "file"),
                  with_noun(static_cast<Integer>(inspection.all.tensors), "tensor"),
                  describe_bytes(inspection.all.bytes)));
  if (inspection.reconciliation) {
    const ModelSpec& spec = inspection.reconciliation->model.spec;
    add("config", fmt::format("{} · {}", spec.architecture, describe(spec)));
  }
  add("parameters", parameters_text(inspection));
  const auto bits = inspection.weights.bits_per_value();
  add("bits per weight", bits ? fmt::format("{:.2f}", *bits) : "–");
  document.blocks.emplace_back(component_table(inspection, kShownComponents));
  document.blocks.emplace_back(Heading{"Storage types"});
  document.blocks.emplace_back(storage_type_table(inspection));
  if (!inspection.extras.empty()) {
    document.blocks.emplace_back(Heading{"Other tensors"});
    document.blocks.emplace_back(extra_table(inspection));
  }
  add("reconciled", verdict(inspection));
  if (inspection.reconciliation) add_problems(*inspection.reconciliation, document);
  return document;
}

Json to_json(const Inspection& inspection) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "inspect.schema.json";
  json["path"] = inspection.path;
  json["verdict"] = verdict_json(passed(inspection), verdict(inspection));
  json["format"] = name_of(inspection.format);
  json["files"] = inspection.files;
  json["all"] = totals_json(inspection.all);
  json["weights"] = totals_json(inspection.weights);
  json["types"] = types_json(inspection);
  json["components"] = Json::array();
  for (const ComponentRow& row : inspection.components) {
    Json& added = json["components"].emplace_back(
        Json{{"category", row.category.empty() ? Json(nullptr) : Json(row.category)}});
    added.update(row_json("component", row.component, row.totals));
  }
  json["extras"] = Json::array();
  for (const ExtraRow& row : inspection.extras) {
    json["extras"].push_back(row_json("kind", row.kind, row.totals));
    json["extras"].back()["example"] = row.example;
  }
  json["explained"] = inspection.is_explained();
  json["reconciliation"] = reconciliation_json(inspection);
  json["config_error"] =
      inspection.config_error.empty() ? Json(nullptr) : Json(inspection.config_error);
  return json;
}

}  // namespace headroom::detail
