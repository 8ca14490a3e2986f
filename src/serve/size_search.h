// Search for the fewest devices that keep latency targets. Internal to src/serve.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "headroom/serve.h"

namespace headroom::detail {

/// Plans of one number of devices, best first: those that meet the targets, then the closest.
struct SizeSearch {
  std::vector<ServedPlan> plans;
  std::optional<ServedPlan> closest_below;  ///< the best that was simulated on fewer devices
  std::int64_t simulated = 0;
};

/// The plans on the fewest devices of `range` that meet the targets, or on the most of them. Empty
/// if the model fits on none. A plan that misses the targets is taken to miss them with fewer
/// replicas.
[[nodiscard]] SizeSearch search_sizes(Planner& planner, const ServeQuestion& question,
                                      const FixedDegrees& fixed, const DeviceRange& range,
                                      const std::function<void(double)>& progress);

/// The highest rate of Poisson arrivals at which `choice` keeps the targets, within 2 %; empty if
/// it misses them at a hundredth of the question's rate.
[[nodiscard]] std::optional<double> largest_rate(Planner& planner, const ServeQuestion& question,
                                                 const PlanChoice& choice);

}  // namespace headroom::detail
