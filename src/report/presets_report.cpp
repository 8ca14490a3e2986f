// PresetsReport -> Document and JSON.
#include <fmt/format.h>

#include "describe.h"
#include "schema_version.h"
#include "writers.h"

namespace headroom::detail {
namespace {

std::string check_word(const PresetSummary& summary) {
  switch (check_reference(summary.model, summary.parameters)) {
    case ReferenceCheck::none:
      return "–";
    case ReferenceCheck::match:
      return "match";
    case ReferenceCheck::match_rounded:
      return "rounded";
    case ReferenceCheck::mismatch:
      break;
  }
  return "MISMATCH";
}

Json preset_json(const PresetSummary& summary) {
  const Model& model = summary.model;
  Json json;
  json["name"] = summary.preset.name;
  json["aliases"] = summary.preset.aliases;
  json["repository"] =
      summary.preset.repository.empty() ? Json(nullptr) : Json(summary.preset.repository);
  json["origin"] = summary.preset.origin;
  json["model"] = to_json(model);
  json["parameters"] = json_integer(summary.parameters);
  json["reference"] = nullptr;
  if (model.reference) {
    json["reference"] = {{"parameters", model.reference->parameters},
                         {"precision", model.reference->rounded ? "rounded" : "exact"},
                         {"source", model.reference->source}};
  }
  const Json preset = Json::parse(summary.preset.json);
  json["overrides"] = preset.value("overrides", Json(nullptr));
  json["config"] = preset.at("config");
  return json;
}

/// Adds a line per key of an object.
void add_keys(Document& document, std::string label, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    document.add_line(std::exchange(label, ""), fmt::format("{} {}", key, value.dump()));
  }
}

/// All that is known of one preset.
Document preset_document(const PresetSummary& summary) {
  const Model& model = summary.model;
  Document document;
  document.add_subject(summary.preset.name, describe(model.spec));
  document.add_line("aliases", summary.preset.aliases.empty()
                                   ? "–"
                                   : fmt::format("{}", fmt::join(summary.preset.aliases, ", ")));
  document.add_line("repository",
                    summary.preset.repository.empty() ? "–" : summary.preset.repository);
  document.add_line("class", model.spec.architecture);
  document.add_line("parameters", with_separators(summary.parameters));
  document.add_line("reference",
                    model.reference
                        ? fmt::format("{} ({}) {}", with_separators(model.reference->parameters),
                                      check_word(summary), model.reference->source)
                        : "–");
  document.add_line("source", model.source);
  document.add_line("origin", summary.preset.origin);
  const Json preset = Json::parse(summary.preset.json);
  if (preset.contains("overrides")) add_keys(document, "overrides", preset.at("overrides"));
  add_keys(document, "config", preset.at("config"));
  return document;
}

}  // namespace

Document to_document(const PresetsReport& report, Detail detail) {
  const bool whole = detail == Detail::operators && !report.presets.empty();
  return whole ? preset_document(report.presets.front()) : to_preset_table(report);
}

Document to_preset_table(const PresetsReport& report) {
  Table table;
  table.columns = {words_column("name", "Preset"), words_column("model_type", "Type"),
                   number_column("parameters", "Parameters"),
                   words_column("check", "Reference", Importance::optional),
                   words_column("aliases", "Aliases", Importance::optional)};
  for (const PresetSummary& summary : report.presets) {
    table.rows.push_back({summary.preset.name, summary.model.spec.model_type, summary.parameters,
                          check_word(summary),
                          fmt::format("{}", fmt::join(summary.preset.aliases, " "))});
  }
  Document document;
  document.blocks.push_back(std::move(table));
  return document;
}

Json to_json(const PresetsReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "presets.schema.json";
  json["presets"] = Json::array();
  for (const PresetSummary& summary : report.presets)
    json["presets"].push_back(preset_json(summary));
  return json;
}

}  // namespace headroom::detail
