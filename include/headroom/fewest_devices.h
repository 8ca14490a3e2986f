// The fewest devices on which a plan fits.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/plan.h"

namespace headroom {

/// Numbers of devices to search.
struct DeviceRange {
  std::int64_t least = 1;
  std::int64_t most = 64;
};

/// The fastest plan of `planner` on the fewest devices of `range`, with the degrees of `fixed`;
/// empty if none fits. Up to 64 devices, none fits on fewer; above, multiples of a node's devices
/// (of 8, where nodes have fewer or more than 64) are tried.
[[nodiscard]] std::optional<RankedPlan> plan_on_fewest_devices(Planner& planner, const Load& load,
                                                               const FixedDegrees& fixed,
                                                               const DeviceRange& range);

}  // namespace headroom
