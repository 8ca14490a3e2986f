// Model types -> Document and JSON (reports/model_types.schema.json).
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {

Document to_document(std::span<const ModelTypeInfo> types) {
  Table table;
  table.columns = {words_column("model_type", "Type"), words_column("architecture", "Class"),
                   words_column("gguf", "GGUF")};
  for (const ModelTypeInfo& type : types) {
    table.rows.push_back({type.model_type, type.architecture, type.reads_gguf ? "yes" : "no"});
  }
  Document document;
  document.blocks.emplace_back(std::move(table));
  return document;
}

Json to_json(std::span<const ModelTypeInfo> types) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "model_types.schema.json";
  json["model_types"] = Json::array();
  for (const ModelTypeInfo& type : types) {
    json["model_types"].push_back({{"model_type", type.model_type},
                                   {"architecture", type.architecture},
                                   {"gguf", type.reads_gguf}});
  }
  return json;
}

}  // namespace headroom::detail
