// LocalModelsReport -> Document and JSON.
#include <utility>

#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }

/// The longest context; none for a model that does not fit.
Cell context_cell(const LocalFit& fit) {
  if (!fit.fits) return {};
  return fit.largest_context ? Cell{Integer{*fit.largest_context}} : Cell{std::string("no limit")};
}

void add_fit_cells(const std::optional<LocalFit>& fit, std::vector<Cell>& row) {
  if (!fit) {
    row.resize(row.size() + 3);
    return;
  }
  row.emplace_back(fit->total_bytes);
  row.emplace_back(yes_or_no(fit->fits));
  row.push_back(context_cell(*fit));
}

Json fit_json(const LocalModelSummary& summary, const std::string& machine) {
  if (!summary.fit) return nullptr;
  const LocalFit& fit = *summary.fit;
  return {{"machine", machine},
          {"total_bytes", json_integer(fit.total_bytes)},
          {"fits", fit.fits},
          {"largest_context", fit.largest_context ? Json(*fit.largest_context) : Json(nullptr)}};
}

Json model_json(const LocalModelSummary& summary) {
  const LocalModel& model = summary.model;
  return {
      {"name", model.name},
      {"store", name_of(model.store)},
      {"format", name_of(model.format)},
      {"storage_type", summary.storage_type.empty() ? Json(nullptr) : Json(summary.storage_type)},
      {"parameters", summary.parameters ? json_integer(*summary.parameters) : Json(nullptr)},
      {"bytes", model.bytes},
      {"path", model.path}};
}

std::vector<Column> columns_of(const LocalModelsReport& report) {
  constexpr Integer kMib = Integer{1} << 20U;
  std::vector<Column> columns{words_column("name", "Model"),
                              words_column("store", "Store"),
                              words_column("format", "Format"),
                              words_column("storage_type", "Type"),
                              number_column("parameters", "Parameters"),
                              number_column("bytes", "Size", {"[MiB]", 1, kMib})};
  if (report.machine) {
    columns.push_back(number_column("total_bytes", "Needs", {"[MiB]", 1, kMib}));
    columns.push_back(words_column("fits", "Fits"));
    columns.push_back(number_column("largest_context", "Context", {"[at most]", 0}));
  }
  columns.push_back(words_column("path", "Path", Importance::optional));
  return columns;
}

}  // namespace

Document to_document(const LocalModelsReport& report) {
  Table table;
  table.columns = columns_of(report);
  for (const LocalModelSummary& summary : report.models) {
    const LocalModel& model = summary.model;
    std::vector<Cell> row{model.name,
                          std::string(name_of(model.store)),
                          std::string(name_of(model.format)),
                          text_cell(summary.storage_type),
                          cell_or_none(summary.parameters),
                          Integer{model.bytes}};
    if (report.machine) add_fit_cells(summary.fit, row);
    row.emplace_back(model.path);
    table.rows.push_back(std::move(row));
  }
  Document document;
  document.blocks.emplace_back(std::move(table));
  return document;
}

Json to_json(const LocalModelsReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "models.schema.json";
  json["models"] = Json::array();
  for (const LocalModelSummary& summary : report.models) {
    Json one = model_json(summary);
    if (report.machine) one["fit"] = fit_json(summary, *report.machine);
    json["models"].push_back(std::move(one));
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
