// Watches the machine's speed while a model runs, with gauge readings between runs.
#pragma once

#include <span>
#include <vector>

#include "gauge.h"
#include "headroom/machine_profile.h"

namespace headroom::measured {

/// Drift of every run: the mean of the readings before and after it; before the first one there is
/// none, and the next two count. Where they are further apart than kSettledRatio, the smaller: what
/// lasts through a run shows on both sides of it. `runs[i]`: runs that end before reading i and
/// begin after the one before it.
[[nodiscard]] std::vector<Drift> drift_of_runs(std::span<const Drift> readings,
                                               std::span<const std::size_t> runs);

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

  /// drift_of_runs() of all runs. Call after the last one.
  [[nodiscard]] std::vector<Drift> finish();

  /// First and last reading; there must have been a run.
  [[nodiscard]] const Drift& first() const { return readings_.front(); }
  [[nodiscard]] const Drift& last() const { return readings_.back(); }

 private:
  const ThreadProfile& profile_;
  Gauge gauge_;
  std::vector<Drift> readings_;
  std::vector<std::size_t> runs_;  ///< see drift_of_runs
  std::size_t pending_ = 0;        ///< runs since the last reading
  Clock::time_point last_;
};

}  // namespace headroom::measured
