// Search for the fewest devices that keep latency targets. Internal to src/serve.
#pragma once

#include <vector>

#include "headroom/serve.h"

namespace headroom::detail {

/// Plans of one number of devices, best first: those that meet the targets, then the closest.
struct SizeSearch {
  std::vector<ServedPlan> plans;
  std::int64_t simulated = 0;
};

/// Simulates all legal plans for 1, 2, 4, … devices, at most `most_devices`, until some meet the
/// targets. Empty if the model fits on none.
[[nodiscard]] SizeSearch search_sizes(Planner& planner, const ServeQuestion& question,
                                      const FixedDegrees& fixed, std::int64_t most_devices);

/// The highest rate of Poisson arrivals at which `choice` keeps the targets, within 2 %; empty if
/// it misses them at a hundredth of the question's rate.
[[nodiscard]] std::optional<double> largest_rate(Planner& planner, const ServeQuestion& question,
                                                 const PlanChoice& choice);

}  // namespace headroom::detail
