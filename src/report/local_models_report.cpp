// LocalModelsReport -> Document and JSON.
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }

}  // namespace

Document to_document(const LocalModelsReport& report) {
  constexpr Integer kMib = Integer{1} << 20U;
  Table table;
  table.columns = {words_column("name", "Model"),
                   words_column("store", "Store"),
                   words_column("format", "Format"),
                   words_column("storage_type", "Type"),
                   number_column("parameters", "Parameters"),
                   number_column("bytes", "Size", {"[MiB]", 1, kMib}),
                   words_column("path", "Path", Importance::optional)};
  for (const LocalModelSummary& summary : report.models) {
    const LocalModel& model = summary.model;
    table.rows.push_back({model.name, std::string(name_of(model.store)),
                          std::string(name_of(model.format)), text_cell(summary.storage_type),
                          cell_or_none(summary.parameters), Integer{model.bytes}, model.path});
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
    const LocalModel& model = summary.model;
    json["models"].push_back(
        {{"name", model.name},
         {"store", name_of(model.store)},
         {"format", name_of(model.format)},
         {"storage_type",
          summary.storage_type.empty() ? Json(nullptr) : Json(summary.storage_type)},
         {"parameters", summary.parameters ? json_integer(*summary.parameters) : Json(nullptr)},
         {"bytes", model.bytes},
         {"path", model.path}});
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
