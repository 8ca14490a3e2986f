#include "headroom/fewest_devices.h"

#include <map>

#include "device_counts.h"

namespace headroom {
namespace {

/// Finds plans on numbers of devices, and keeps the fastest of each.
class PlansByDevices {
 public:
  PlansByDevices(Planner& planner, const Load& load, const FixedDegrees& fixed)
      : planner_(planner), load_(load), fixed_(fixed) {}

  bool fits(std::int64_t devices) {
    if (weight_bytes_ / devices > planner_.rates().memory_bytes) return false;
    SearchSpace space;
    space.devices = devices;
    space.load = load_;
    space.keep = 1;
    space.fixed = fixed_;
    const PlanSearch search = search_plans_alone(planner_, space);
    if (!search.best.empty()) fastest_.emplace(devices, search.best.front());
    return !search.best.empty();
  }

  [[nodiscard]] const RankedPlan& fastest(std::int64_t devices) const {
    return fastest_.at(devices);
  }

 private:
  Planner& planner_;
  const Load& load_;
  const FixedDegrees& fixed_;
  Integer weight_bytes_ = planner_.stage_weights(PlanChoice{}).front();  ///< on one device
  std::map<std::int64_t, RankedPlan> fastest_;
};

}  // namespace

std::optional<RankedPlan> plan_on_fewest_devices(Planner& planner, const Load& load,
                                                 const FixedDegrees& fixed,
                                                 const DeviceRange& range) {
  PlansByDevices plans(planner, load, fixed);
  const detail::DeviceCounts counts(range.least, range.most, planner.rates().link.devices_per_node,
                                    fixed);
  const auto fewest =
      detail::fewest_that_works(counts, [&](std::int64_t devices) { return plans.fits(devices); });
  if (!fewest) return std::nullopt;
  return plans.fastest(*fewest);
}

}  // namespace headroom
