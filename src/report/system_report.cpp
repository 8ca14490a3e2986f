// SystemReport -> Document and JSON.
#include <fmt/format.h>

#include "describe.h"
#include "headroom/system.h"
#include "schema_version.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Cell text_or_none(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }
Json json_text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json bytes_or_null(const std::optional<Integer>& bytes) {
  return bytes ? json_integer(*bytes) : Json(nullptr);
}

std::string processor_text(const SystemReport& report) {
  std::string text =
      fmt::format("{} · {} logical processors", report.context.cpu, report.context.logical_cpus);
  if (report.usable_cpus < report.context.logical_cpus) {
    text += fmt::format(", of which {} may be used", report.usable_cpus);
  }
  return text;
}

std::string memory_text(const SystemReport& report) {
  return fmt::format("{} installed · {} available to a run ({})",
                     describe_bytes(report.memory_bytes), describe_bytes(report.available_bytes),
                     report.available_source);
}

std::string profile_text(const std::optional<OwnProfile>& profile) {
  if (!profile) return "none";
  std::string text = fmt::format("of {}", profile->date);
  if (!profile->effort.empty()) text += " · " + profile->effort;
  text += fmt::format(" · {} {}", fmt::join(profile->threads, ", "),
                      plural(profile->threads.back(), "thread"));
  if (!profile->invalid_because.empty()) text += " · not valid: it " + profile->invalid_because;
  return text;
}

std::string configuration_text(const Configuration& configuration) {
  if (configuration.file.empty()) return "no file";
  return configuration.file + (configuration.exists ? "" : " (does not exist)");
}

Json settings_json(const std::vector<UserSetting>& settings) {
  Json json = Json::array();
  for (const UserSetting& setting : settings) {
    json.push_back({{"name", setting.name}, {"value", setting.value}, {"source", setting.source}});
  }
  return json;
}

Table device_table(const SystemReport& report) {
  constexpr Integer kGibibyte = Integer{1} << 30U;
  Table table;
  table.columns = {words_column("name", "Device"),
                   number_column("memory_bytes", "Memory", {"[GiB]", 2, kGibibyte}),
                   number_column("used_bytes", "In use", {"[GiB]", 2, kGibibyte}),
                   words_column("machine", "In the catalogue"),
                   words_column("driver", "Driver", Importance::optional),
                   words_column("source", "Source", Importance::optional)};
  for (const LocalDevice& device : report.devices) {
    table.rows.push_back({device.name, cell_or_none(device.memory_bytes),
                          cell_or_none(device.used_bytes), text_or_none(device.machine),
                          text_or_none(device.driver), device.source});
  }
  return table;
}

Json profile_json(const OwnProfile& profile) {
  return {{"date", profile.date},
          {"effort", json_text_or_null(profile.effort)},
          {"threads", profile.threads},
          {"valid", profile.invalid_because.empty()},
          {"invalid_because", json_text_or_null(profile.invalid_because)}};
}

}  // namespace

Document to_document(const SystemReport& report) {
  Document document;
  document.add_line("processor", processor_text(report));
  document.add_line("caches", fmt::format("{}", fmt::join(report.context.caches, " · ")));
  document.add_line("memory", memory_text(report));
  document.add_line("GEMMs", report.context.backend);
  document.add_line("calibration", profile_text(report.profile));
  document.add_line("configuration", configuration_text(report.configuration));
  for (const UserSetting& setting : report.configuration.settings) {
    document.add_line("", fmt::format("{} = {} ({})", setting.name, setting.value, setting.source));
  }
  std::vector<std::string> engines;
  for (const LocalEngine& engine : report.engines) engines.push_back(engine.name);
  document.add_line("engines",
                    engines.empty() ? "none" : fmt::format("{}", fmt::join(engines, " · ")));
  if (report.devices.empty()) {
    document.add_line("devices", "none found by nvidia-smi, rocm-smi or the amdgpu driver");
  } else {
    document.blocks.emplace_back(device_table(report));
  }
  return document;
}

Document to_device_table(const SystemReport& report) { return {{device_table(report)}}; }

Json to_json(const SystemReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "system.schema.json";
  json["cpu"] = report.context.cpu;
  json["logical_cpus"] = report.context.logical_cpus;
  json["usable_cpus"] = report.usable_cpus;
  json["caches"] = report.context.caches;
  json["memory_bytes"] = json_integer(report.memory_bytes);
  json["available_bytes"] = json_integer(report.available_bytes);
  json["available_source"] = report.available_source;
  json["backend"] = report.context.backend;
  json["compiler"] = report.context.compiler;
  json["devices"] = Json::array();
  for (const LocalDevice& device : report.devices) {
    json["devices"].push_back({{"name", device.name},
                               {"memory_bytes", bytes_or_null(device.memory_bytes)},
                               {"used_bytes", bytes_or_null(device.used_bytes)},
                               {"driver", json_text_or_null(device.driver)},
                               {"source", device.source},
                               {"machine", json_text_or_null(device.machine)}});
  }
  json["engines"] = Json::array();
  for (const LocalEngine& engine : report.engines) {
    json["engines"].push_back({{"name", engine.name}, {"path", engine.path}});
  }
  json["profile"] = report.profile ? profile_json(*report.profile) : Json(nullptr);
  json["configuration"] = {{"file", json_text_or_null(report.configuration.file)},
                           {"exists", report.configuration.exists},
                           {"settings", settings_json(report.configuration.settings)}};
  return json;
}

}  // namespace headroom::detail
