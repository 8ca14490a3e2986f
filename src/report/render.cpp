// The one place that turns a report and a format into text.
#include "document.h"
#include "writers.h"

namespace headroom {
std::string render(const AnalyzeReport& report, const RenderOptions& options) {
  if (options.format == Format::json) {
    return detail::to_json_text(detail::to_json(report, options.detail));
  }
  return detail::to_format(detail::to_document(report, options.detail), options);
}

std::string render(const ExplainReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  if (options.format == Format::csv) return detail::to_csv(detail::to_figure_table(report));
  return detail::to_format(detail::to_document(report), options);
}

std::string render(const DiffReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  return detail::to_format(detail::to_document(report), options);
}

std::string render(const PresetsReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  if (options.format == Format::csv) return detail::to_csv(detail::to_preset_table(report));
  return detail::to_format(detail::to_document(report), options);
}

std::string render(const Measurement& measurement, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(measurement));
  return detail::to_format(detail::to_document(measurement), options);
}

std::string render(const Inspection& inspection, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(inspection));
  if (options.format == Format::csv) return detail::to_csv(detail::to_component_table(inspection));
  return detail::to_format(detail::to_document(inspection), options);
}

std::string render(const MachinesReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  return detail::to_format(detail::to_document(report), options);
}

std::string render(const MachineProfile& profile, const RenderOptions& options) {
  if (options.format == Format::json) return profile_to_json(profile);
  return detail::to_format(detail::to_document(profile), options);
}

}  // namespace headroom
