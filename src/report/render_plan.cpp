#include "headroom/render_plan.h"

#include "plan_words.h"

namespace headroom {
namespace {

template <class Report>
std::string rendered(const Report& report, const RenderOptions& options) {
  switch (options.format) {
    case Format::json:
      return detail::to_json_text(detail::to_json(report));
    case Format::csv:
      return detail::to_csv(detail::to_document(report));
    case Format::markdown:
      return detail::to_markdown(detail::to_document(report));
    case Format::table:
      break;
  }
  return detail::to_text(detail::to_document(report), {options.width, options.colour});
}

}  // namespace

std::string render(const FitReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

std::string render(const PlanReport& report, const RenderOptions& options) {
  return rendered(report, options);
}

}  // namespace headroom
