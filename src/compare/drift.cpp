// Comparison of a prediction with runs on a machine whose speed drifts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headroom/compare.h"

namespace headroom {
namespace {

double median_of(std::vector<double> values) { return summarize(std::move(values)).median_s; }

double median_of(std::span<const Drift> drifts, double Drift::*factor) {
  std::vector<double> factors;
  std::ranges::transform(drifts, std::back_inserter(factors), factor);
  return median_of(std::move(factors));
}

/// Time of each run over its prediction under that run's drift.
std::vector<double> ratios_of(const TimePrediction& prediction, std::span<const double> samples_s,
                              std::span<const Drift> drifts) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(samples_s.size(), drifts.size()); ++i) {
    ratios.push_back(samples_s[i] / total_with(prediction, drifts[i]));
  }
  return ratios;
}

/// A machine this much slower or faster than at its calibration is not the one that was calibrated.
constexpr double kMostDrift = 2;
/// A change during the runs that one factor for all of them no longer describes.
constexpr double kMostChange = 1.3;

double ratio(double a, double b) { return std::max(a, b) / std::min(a, b); }

}  // namespace

std::string disturbance_of(const DriftReport& drift) {
  const Drift& before = drift.before;
  const Drift& after = drift.after;
  for (const double factor : {before.compute, before.memory, after.compute, after.memory}) {
    if (ratio(factor, 1) > kMostDrift) {
      return fmt::format("the machine ran at {:.2f} times its calibrated time", factor);
    }
  }
  const double change =
      std::max(ratio(before.compute, after.compute), ratio(before.memory, after.memory));
  if (change <= kMostChange) return {};
  return fmt::format("the machine's speed changed {:.2f}-fold during the runs", change);
}

TimePrediction corrected_for_drift(TimePrediction prediction, std::span<const double> samples_s,
                                   std::span<const Drift> drifts) {
  const double measured = median_of({samples_s.begin(), samples_s.end()});
  const double total = measured / median_of(ratios_of(prediction, samples_s, drifts));
  const Drift typical{median_of(drifts, &Drift::compute), median_of(drifts, &Drift::memory)};
  return with_drift(std::move(prediction), typical, total);
}

double spread_without_drift(const TimePrediction& prediction, std::span<const double> samples_s,
                            std::span<const Drift> drifts) {
  const TimeStatistics ratios = summarize(ratios_of(prediction, samples_s, drifts));
  return ratios.mad_s / ratios.median_s;
}

}  // namespace headroom
