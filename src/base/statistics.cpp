#include <algorithm>
#include <cmath>
#include <utility>

#include "headroom/measurement.h"

namespace headroom {
namespace {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::string_view name_of(MeasuredPhase phase) noexcept {
  switch (phase) {
    case MeasuredPhase::prefill:
      return "prefill";
    case MeasuredPhase::decode:
      return "decode";
    case MeasuredPhase::generate:
      break;
  }
  return "generate";
}

const RankMeasurement& RanksMeasurement::slowest() const {
  return *std::ranges::max_element(
      ranks, {}, [](const RankMeasurement& rank) { return rank.time_s - rank.communication_s; });
}

TimeStatistics summarize(std::vector<double> samples_s) {
  TimeStatistics statistics;
  statistics.median_s = median_of(samples_s);
  const auto [least, most] = std::ranges::minmax_element(samples_s);
  statistics.min_s = *least;
  statistics.max_s = *most;
  std::vector<double> deviations;
  deviations.reserve(samples_s.size());
  for (const double sample : samples_s) {
    deviations.push_back(std::abs(sample - statistics.median_s));
  }
  statistics.mad_s = median_of(std::move(deviations));
  statistics.samples_s = std::move(samples_s);
  return statistics;
}

}  // namespace headroom
