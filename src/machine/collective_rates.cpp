// Interpolation between measured collectives.
#include "headroom/collective_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headroom/error.h"
#include "with_noun.h"

namespace headroom {

const std::vector<CollectiveKind>& measured_collectives() {
  static const std::vector<CollectiveKind> kinds{
      CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
      CollectiveKind::all_to_all, CollectiveKind::send};
  return kinds;
}

double seconds_of(const CollectiveTable& table, double bytes) {
  const std::vector<CollectivePoint>& points = table.points;
  const CollectivePoint& last = points.back();
  const auto largest = static_cast<double>(last.bytes);
  if (bytes >= largest) return last.seconds * bytes / largest;
  const auto above = std::ranges::upper_bound(points, bytes, {}, [](const CollectivePoint& point) {
    return static_cast<double>(point.bytes);
  });
  if (above == points.begin()) return points.front().seconds;
  const CollectivePoint& below = *(above - 1);
  const auto smaller = static_cast<double>(below.bytes);
  const double share =
      std::log(bytes / smaller) / std::log(static_cast<double>(above->bytes) / smaller);
  return below.seconds * std::pow(above->seconds / below.seconds, share);
}

const CollectiveTable& table_of(const CollectiveRates& rates, CollectiveKind kind,
                                const CollectiveGroups& groups) {
  const auto found = std::ranges::find_if(rates.tables, [&](const CollectiveTable& table) {
    return table.kind == kind && table.groups == groups;
  });
  if (found != rates.tables.end()) return *found;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} among {} of {} processes on {} is not calibrated", name_of(kind),
                          groups.ranks, groups.processes, detail::with_noun(groups.hosts, "host")),
              {},
              fmt::format("calibrate collectives between {} processes, on the same hosts",
                          groups.processes));
}

CollectiveRates merged(CollectiveRates rates, const CollectiveRates& newer) {
  std::erase_if(rates.tables, [&](const CollectiveTable& old) {
    return std::ranges::any_of(newer.tables, [&](const CollectiveTable& table) {
      return table.kind == old.kind && table.groups == old.groups;
    });
  });
  rates.tables.insert(rates.tables.end(), newer.tables.begin(), newer.tables.end());
  rates.date = newer.date;
  rates.library = newer.library;
  return rates;
}

std::string_view name_of(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::none:
      return "none";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::send:
      break;
  }
  return "send";
}

}  // namespace headroom
