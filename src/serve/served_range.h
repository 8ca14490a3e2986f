// Range of the steps that a plan served. Internal to src/serve.
#pragma once

#include "headroom/plan.h"
#include "headroom/serve.h"

namespace headroom::detail {

/// Planner::time_range of the steps of `figures`: of mean prompts, and of decode steps of as many
/// sequences as ran on average, by the seconds of each.
[[nodiscard]] double served_range(Planner& planner, const PlanChoice& choice,
                                  const ServeFigures& figures);

}  // namespace headroom::detail
