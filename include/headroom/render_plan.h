// The planner's reports as text.
#pragma once

#include <string>

#include "headroom/fit.h"
#include "headroom/report.h"

namespace headroom {

[[nodiscard]] std::string render(const FitReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const PlanReport& report, const RenderOptions& options);

}  // namespace headroom
