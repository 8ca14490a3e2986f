#include "headroom/render_study.h"

#include "study_words.h"

namespace headroom {
namespace {

/// `table` is what CSV holds.
template <class Report>
std::string rendered(const Report& report, const detail::Document& table,
                     const RenderOptions& options) {
  if (options.format == Format::json) return detail::to_json_text(detail::to_json(report));
  if (options.format == Format::csv) return detail::to_csv(table);
  return detail::to_format(detail::to_document(report), options);
}

}  // namespace

std::string render(const ComplexityReport& report, const RenderOptions& options) {
  return rendered(report, detail::to_length_table(report), options);
}

std::string render(const AssociativityReport& report, const RenderOptions& options) {
  return rendered(report, detail::to_length_table(report.layers), options);
}

std::string render(const GenerationReport& report, const RenderOptions& options) {
  return rendered(report, detail::to_document(report), options);
}

std::string render(const SharesReport& report, const RenderOptions& options) {
  return rendered(report, detail::to_length_table(report), options);
}

}  // namespace headroom
