// Dispatches every report to the writer of the requested format.
#include <algorithm>

#include "default_settings.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "html.h"
#include "invocation_json.h"
#include "live_formulas.h"
#include "pictures.h"
#include "terms.h"
#include "text_table.h"
#include "trace.h"
#include "writers.h"

namespace headroom {
namespace {

/// The report with the command that made it, after its schema's version.
detail::Json with_invocation(const detail::Json& report, const RenderOptions& options) {
  const Invocation& invocation = options.invocation;
  const detail::Json produced_by =
      detail::to_json(invocation, detail::defaults_of(report, invocation));
  detail::Json json;
  for (const auto& [key, value] : report.items()) {
    json[key] = value;
    if (key == "schema_version") json["produced_by"] = produced_by;
  }
  return json;
}

/// "machine l40s (~/.config/headroom.toml)"
std::string settings_text(const Invocation& invocation) {
  std::string text;
  for (const UserSetting& setting : invocation.settings) {
    text += (text.empty() ? "" : " · ") + setting.name + " " + setting.value + " (" +
            setting.source + ")";
  }
  return text;
}

/// Adds to the report's header which settings the command line does not state, and their origin.
detail::Document with_settings(detail::Document document, const detail::Json& report,
                               const RenderOptions& options) {
  const Invocation& invocation = options.invocation;
  if (invocation.arguments.empty()) return document;
  const auto is_of_header = [](const detail::Block& block) {
    const auto* line = std::get_if<detail::Line>(&block);
    return line != nullptr && line->role != detail::LineRole::verdict;
  };
  const std::pair<const char*, std::string> lines[] = {
      {"settings", settings_text(invocation)},
      {"defaults", detail::describe_defaults(report, invocation)}};
  for (const auto& [label, text] : lines) {
    const auto end = std::ranges::find_if_not(document.blocks, is_of_header);
    if (!text.empty()) document.blocks.insert(end, detail::Line{label, text});
  }
  return document;
}

/// The document as people read it: settings in its header, terms under its tables.
detail::Document for_readers(detail::Document document, const detail::Json& report,
                             const RenderOptions& options) {
  return detail::with_terms(with_settings(std::move(document), report, options));
}

/// The document with the columns of its tables that a terminal of `width` columns shows: terms of
/// dropped columns need no explanation.
detail::Document fitted_to(detail::Document document, std::size_t width) {
  for (detail::Block& block : document.blocks) {
    auto* const table = std::get_if<detail::Table>(&block);
    if (table != nullptr) *table = detail::fitted_to(std::move(*table), width);
  }
  return document;
}

/// The answer of a report whose header has one stands behind its subject.
detail::Document with_answer_first(detail::Document document) {
  const auto has_role = [](detail::LineRole role) {
    return [role](const detail::Block& block) {
      const auto* line = std::get_if<detail::Line>(&block);
      return line != nullptr && line->role == role;
    };
  };
  const auto is_line = [](const detail::Block& block) {
    return std::holds_alternative<detail::Line>(block);
  };
  const auto end = std::ranges::find_if_not(document.blocks, is_line);
  const auto rest =
      std::stable_partition(document.blocks.begin(), end, has_role(detail::LineRole::subject));
  std::stable_partition(rest, end, has_role(detail::LineRole::verdict));
  return document;
}

/// A page with pictures before the first table and formulas after the last.
std::string page_of(const detail::Document& document, const detail::Json& report,
                    std::vector<std::string> pictures, std::vector<std::string> exercises,
                    const RenderOptions& options) {
  const std::vector<std::string>& arguments = options.invocation.arguments;
  return detail::to_page({.name = arguments.empty() ? "headroom" : arguments.front(),
                          .document = printable(for_readers(document, report, options)),
                          .report = detail::to_compact_json_text(with_invocation(report, options)),
                          .pictures = std::move(pictures),
                          .exercises = std::move(exercises)},
                         options.invocation);
}

/// Calls the writer of the requested format. CSV is the first table of the document that `csv`
/// returns.
template <class MakeDocument, class MakeCsv, class MakeJson>
std::string rendered(const RenderOptions& options, const MakeDocument& document, const MakeCsv& csv,
                     const MakeJson& json) {
  switch (options.format) {
    case Format::json:
      return detail::to_json_text(with_invocation(json(), options));
    case Format::csv:
      return detail::to_csv(printable(csv()));
    case Format::markdown:
      return detail::to_markdown(
          printable(with_answer_first(for_readers(document(), json(), options))));
    case Format::html:
      return page_of(document(), json(), {}, {}, options);
    case Format::trace:
      throw_invalid_input(
          "only predicted and measured runs, and training steps of plans, have a trace", "");
    case Format::table:
      break;
  }
  const detail::Document shown = for_readers(fitted_to(document(), options.width), json(), options);
  return detail::to_text(printable(with_answer_first(shown)), {options.width, options.colour});
}

/// A report with a CSV table of its own.
template <class Report, class MakeCsv>
std::string rendered(const Report& report, const MakeCsv& csv, const RenderOptions& options) {
  if (options.format == Format::html) {
    return page_of(detail::to_document(report), detail::to_json(report),
                   detail::pictures_of(report), {}, options);
  }
  const auto document = [&] { return detail::to_document(report); };
  return rendered(options, document, csv, [&] { return detail::to_json(report); });
}

/// A report whose CSV is the first table of its document.
template <class Report>
std::string rendered(const Report& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_document(report); }, options);
}

/// A machine's file. It says which command wrote it, unless it states an earlier one.
std::string profile_file(MachineProfile profile, const RenderOptions& options) {
  const bool has_command = !options.invocation.arguments.empty();
  if (has_command && !profile.produced_by) profile.produced_by = options.invocation;
  return profile_to_json(profile);
}

detail::Json profile_data(const MachineProfile& profile) {
  return detail::Json::parse(profile_to_json(profile));
}

/// The comparison, or a list of several.
detail::Json list_or_only(std::span<const Comparison> comparisons, const RenderOptions& options) {
  detail::Json list = detail::Json::array();
  for (const Comparison& comparison : comparisons) {
    list.push_back(with_invocation(detail::to_json(comparison), options));
  }
  return list.size() == 1 ? list.front() : list;
}

}  // namespace

std::string render(const AnalyzeReport& report, const RenderOptions& options) {
  const auto document = [&] { return detail::to_document(report, options.detail); };
  const auto json = [&] { return detail::to_json(report, options.detail); };
  if (options.format == Format::trace) return detail::to_trace(report);
  if (options.format == Format::html) {
    return page_of(document(), json(), detail::pictures_of(report), {detail::live_formulas(report)},
                   options);
  }
  return rendered(options, document, document, json);
}

std::string render(const ExplainReport& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_figure_table(report); }, options);
}

std::string render(const Derivation& derivation, const RenderOptions& options) {
  return rendered(
      derivation, [&] { return detail::to_step_table(derivation); }, options);
}

std::string render(const ClaimReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const CrossoverReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const DiffReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const PresetsReport& report, const RenderOptions& options) {
  const auto document = [&] { return detail::to_document(report, options.detail); };
  const auto table = [&] { return detail::to_preset_table(report); };
  return rendered(options, document, table, [&] { return detail::to_json(report); });
}

std::string render(const LocalModelsReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const Measurement& measurement, const RenderOptions& options) {
  if (options.format == Format::trace) return detail::to_trace(measurement);
  return rendered(measurement, options);
}

std::string render(const UnknownModel& model, const RenderOptions& options) {
  const auto document = [&] { return detail::to_document(model, options.detail); };
  const auto csv = [&] { return detail::to_type_table(model); };
  return rendered(options, document, csv, [&] { return detail::to_json(model); });
}

std::string render(std::span<const ModelTypeInfo> types, const RenderOptions& options) {
  return rendered(types, options);
}

std::string render(const Inspection& inspection, const RenderOptions& options) {
  return rendered(
      inspection, [&] { return detail::to_component_table(inspection); }, options);
}

std::string render(const MachinesReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const MachineProfile& profile, const RenderOptions& options) {
  // The JSON of a profile is the file that `profile_from_json` reads.
  if (options.format == Format::json) return profile_file(profile, options);
  const auto document = [&] { return detail::to_document(profile); };
  const auto csv = [&] { return detail::to_figure_table(profile); };
  return rendered(options, document, csv, [&] { return profile_data(profile); });
}

std::string render(const CalibrationReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return profile_file(report.machine, options);
  const auto document = [&] { return detail::to_document(report); };
  return rendered(options, document, document, [&] { return profile_data(report.machine); });
}

std::string render(const TrainTimeReport& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_run_table(report); }, options);
}

std::string render(const SplitReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const DeviceChoiceReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const FitReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render_trace(const TimelineReport& report) { return detail::to_trace(report); }

std::string render(const PlanReport& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_plan_table(report); }, options);
}

std::string render(const SystemReport& report, const RenderOptions& options) {
  const auto document = [&] { return detail::to_document(report); };
  const auto csv = [&] { return detail::to_device_table(report); };
  return rendered(options, document, csv, [&] { return detail::to_json(report); });
}

std::string render(const ServeMachinesReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const ServeReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const ComplexityReport& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_length_table(report); }, options);
}

std::string render(const AssociativityReport& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_length_table(report.layers); }, options);
}

std::string render(const GenerationReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const SharesReport& report, const RenderOptions& options) {
  return rendered(
      report, [&] { return detail::to_length_table(report); }, options);
}

std::string render(std::span<const Comparison> comparisons, const RenderOptions& options) {
  switch (options.format) {
    case Format::csv:
      return detail::to_csv(detail::to_row_table(comparisons));
    case Format::json:
      return detail::to_json_text(list_or_only(comparisons, options));
    case Format::html: {
      std::vector<std::string> pages;
      for (const Comparison& comparison : comparisons) {
        pages.push_back(rendered(comparison, options));
      }
      return join_pages(pages);
    }
    case Format::trace:
      throw_invalid_input(
          "only predicted and measured runs, and training steps of plans, have a trace", "");
    case Format::markdown:
    case Format::table:
      break;
  }
  std::string text;
  for (const Comparison& comparison : comparisons) {
    text += (text.empty() ? "" : "\n") + rendered(comparison, options);
  }
  return text;
}

}  // namespace headroom
