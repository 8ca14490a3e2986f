// Queries on a profile.
#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/machine_profile.h"

namespace headroom {

std::string_view name_of(CalibrationEffort effort) noexcept {
  switch (effort) {
    case CalibrationEffort::quick:
      return "quick";
    case CalibrationEffort::full:
      break;
  }
  return "full";
}

const ThreadProfile* curves_of(const MachineProfile& machine, int threads) {
  const auto* rates = std::get_if<MeasuredRates>(&machine.rates);
  if (rates == nullptr) return nullptr;
  const auto& profiles = rates->by_threads;
  if (threads == 0) return &*std::ranges::max_element(profiles, {}, &ThreadProfile::threads);
  const auto found = std::ranges::find(profiles, threads, &ThreadProfile::threads);
  if (found != profiles.end()) return &*found;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} was not calibrated with {} threads", machine.name, threads), {},
              fmt::format("calibrate it with 1 and {} threads", threads));
}

const KernelTable& table_of(const ThreadProfile& profile, KernelKind kind) {
  return *std::ranges::find(profile.tables, kind, &KernelTable::kind);
}

double peak_flops_per_s(const ThreadProfile& profile) {
  const KernelTable& table = table_of(profile, KernelKind::linear_warm);
  double most = 0;
  for (std::size_t number = 0; number < table.seconds.size(); ++number) {
    const std::optional<double>& seconds = table.seconds[number];
    if (!seconds) continue;
    most = std::max(most, 2 * work_of(table.kind, point_of(table.axes, number)) / *seconds);
  }
  return most;
}

}  // namespace headroom
