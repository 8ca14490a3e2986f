// The one place that turns a report and a format into text.
#include "document.h"
#include "writers.h"

namespace headroom {
namespace {

std::string written(const detail::Document& document, const RenderOptions& options) {
  switch (options.format) {
    case Format::csv:
      return detail::to_csv(document);
    case Format::markdown:
      return detail::to_markdown(document);
    case Format::table:
    case Format::json:
      break;
  }
  return detail::to_text(document, {options.width, options.colour});
}

}  // namespace

std::string render(const AnalyzeReport& report, const RenderOptions& options) {
  if (options.format == Format::json) {
    return detail::to_json_text(detail::to_json(report, options.detail));
  }
  return written(detail::to_document(report, options.detail), options);
}

std::string render(const ExplainReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  if (options.format == Format::csv) return detail::to_csv(detail::to_figure_table(report));
  return written(detail::to_document(report), options);
}

std::string render(const DiffReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  return written(detail::to_document(report), options);
}

std::string render(const PresetsReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  if (options.format == Format::csv) return detail::to_csv(detail::to_preset_table(report));
  return written(detail::to_document(report), options);
}

std::string render(const Measurement& measurement, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(measurement));
  return written(detail::to_document(measurement), options);
}

std::string render(const MachinesReport& report, const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  return written(detail::to_document(report), options);
}

std::string render(const MachineProfile& profile, const RenderOptions& options) {
  if (options.format == Format::json) return profile_to_json(profile);
  return written(detail::to_document(profile), options);
}

}  // namespace headroom
