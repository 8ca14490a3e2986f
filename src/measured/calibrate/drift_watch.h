// Watches the machine while a model runs: a reading of the gauge now and then between runs.
#pragma once

#include <vector>

#include "gauge.h"
#include "headroom/machine_profile.h"

namespace headroom::measured {

class DriftWatch {
 public:
  /// `profile` is what the machine was like; it must outlive the watch.
  DriftWatch(const ThreadProfile& profile, Backend backend);

  /// To be called after every run.
  void run_done();

  /// The drift of every run, after the last one: the mean of the readings before and after it.
  [[nodiscard]] std::vector<Drift> finish();

  /// The first and the last reading; there must have been a run.
  [[nodiscard]] const Drift& first() const { return readings_.front(); }
  [[nodiscard]] const Drift& last() const { return readings_.back(); }

 private:
  void read();

  const ThreadProfile& profile_;
  Gauge gauge_;
  std::vector<Drift> readings_;
  std::vector<Drift> by_run_;
  std::size_t pending_ = 0;  ///< runs since the last reading
  Clock::time_point last_;
};

}  // namespace headroom::measured
