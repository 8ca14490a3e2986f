// Notes on a question that all reports of a plan share. Internal to src/plan.
#pragma once

#include <string>
#include <vector>

#include "headroom/plan_report.h"

namespace headroom::detail {

/// Notes on the model, the context, the arithmetic and the network.
[[nodiscard]] std::vector<std::string> notes_of(const PlanQuestion& question);

}  // namespace headroom::detail
