#include "drift_watch.h"

namespace headroom::measured {
namespace {

/// Minimum seconds between readings; one takes a few hundredths of a second.
constexpr double kReadingInterval = 0.08;

}  // namespace

DriftWatch::DriftWatch(const ThreadProfile& profile, Backend backend)
    : profile_(profile), gauge_(backend, profile.threads, profile.probe_memory_bytes) {}

void DriftWatch::run_done() {
  count_run();
  if (is_due()) read();
}

bool DriftWatch::is_due() const { return seconds_since(last_) >= kReadingInterval; }

std::vector<Drift> DriftWatch::finish() {
  if (pending_ > 0) read();
  return by_run_;
}

void DriftWatch::read() {
  const GaugeReading reading = gauge_.read();
  const Drift now{reading.compute_s / profile_.probe_compute_s,
                  reading.memory_s / profile_.probe_memory_s};
  const Drift before = readings_.empty() ? now : readings_.back();
  const Drift mean{(before.compute + now.compute) / 2, (before.memory + now.memory) / 2};
  by_run_.insert(by_run_.end(), pending_, mean);
  pending_ = 0;
  readings_.push_back(now);
  last_ = Clock::now();
}

}  // namespace headroom::measured
