#include "drift_watch.h"

#include <algorithm>

namespace headroom::measured {
namespace {

/// Minimum seconds between readings; one takes a few hundredths of a second.
constexpr double kReadingInterval = 0.08;
/// Readings before and after a run on a shared machine differ by 4 % in the median, and by more
/// than 10 % in a fifth of all runs: bursts of other work, of a third or more.
constexpr double kSettledRatio = 1.1;

double between(double before, double after) {
  const auto [less, more] = std::minmax(before, after);
  return more > kSettledRatio * less ? less : (before + after) / 2;
}

Drift between(const Drift& before, const Drift& after) {
  return {between(before.compute, after.compute), between(before.memory, after.memory)};
}

}  // namespace

std::vector<Drift> drift_of_runs(std::span<const Drift> readings,
                                 std::span<const std::size_t> runs) {
  std::vector<Drift> drifts;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const std::size_t after = i == 0 ? std::min<std::size_t>(1, readings.size() - 1) : i;
    const std::size_t before = after == 0 ? 0 : after - 1;
    drifts.insert(drifts.end(), runs[i], between(readings[before], readings[after]));
  }
  return drifts;
}

DriftWatch::DriftWatch(const ThreadProfile& profile, Backend backend)
    : profile_(profile), gauge_(backend, profile.threads, profile.probe_memory_bytes) {}

void DriftWatch::run_done() {
  count_run();
  if (is_due()) read();
}

bool DriftWatch::is_due() const { return seconds_since(last_) >= kReadingInterval; }

std::vector<Drift> DriftWatch::finish() {
  if (pending_ > 0) read();
  return drift_of_runs(readings_, runs_);
}

void DriftWatch::read() {
  const GaugeReading reading = gauge_.read();
  const Drift usual = usual_drift(profile_);
  readings_.push_back({reading.compute_s / (profile_.probe_compute_s * usual.compute),
                       reading.memory_s / (profile_.probe_memory_s * usual.memory)});
  runs_.push_back(pending_);
  pending_ = 0;
  last_ = Clock::now();
}

}  // namespace headroom::measured
