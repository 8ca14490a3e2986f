// Watches the machine's speed while a model runs, with gauge readings between runs.
#pragma once

#include <vector>

#include "gauge.h"
#include "headroom/machine_profile.h"

namespace headroom::measured {

class DriftWatch {
 public:
  /// `profile` holds the machine's calibrated speed; it must outlive the watch.
  DriftWatch(const ThreadProfile& profile, Backend backend);

  /// Call after every run.
  void run_done();

  /// The parts of run_done(), for processes that read at the same time.
  void count_run() { ++pending_; }
  [[nodiscard]] bool is_due() const;
  void read();

  /// Drift of every run: the mean of the readings before and after it. Call after the last run.
  [[nodiscard]] std::vector<Drift> finish();

  /// First and last reading; there must have been a run.
  [[nodiscard]] const Drift& first() const { return readings_.front(); }
  [[nodiscard]] const Drift& last() const { return readings_.back(); }

 private:
  const ThreadProfile& profile_;
  Gauge gauge_;
  std::vector<Drift> readings_;
  std::vector<Drift> by_run_;
  std::size_t pending_ = 0;  ///< runs since the last reading
  Clock::time_point last_;
};

}  // namespace headroom::measured
