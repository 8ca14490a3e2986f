// Real runs of the complexity studies: many lengths in turn, round by round, so that a machine that
// is now faster, now slower, spoils no single one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/complexity.h"
#include "measure.h"

namespace headroom::cli {

struct RunPlan {
  int threads = 0;          ///< 0: all processors
  int rounds = 3;           ///< over all lengths
  double most_seconds = 5;  ///< a length that would take longer is not run
  measured::Backend backend = measured::Backend::eigen;
};

/// One thing to run: a workload of a model.
struct RunTask {
  const Model* model = nullptr;
  Workload workload;
  MeasuredPhase phase = MeasuredPhase::prefill;
  std::int64_t new_tokens = 0;  ///< generate only
  double flops = 1;             ///< of matrix products
  std::size_t series = 0;       ///< tasks of one series are of growing cost, in order
};

/// What became of it.
struct RunResult {
  std::vector<double> samples_s;
  std::vector<OperatorMeasurement> operators;  ///< each with the least time that it ever took
  std::string skipped;                         ///< why there is nothing; empty where there is

  [[nodiscard]] bool was_run() const noexcept { return !samples_s.empty(); }
  [[nodiscard]] double fastest_s() const;
  [[nodiscard]] double median_s() const;
};

struct TaskRuns {
  std::vector<RunResult> results;  ///< of each task
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
};

/// Runs all tasks with random weights. What would not fit into memory, take too long, or cannot be
/// run is skipped and says so; after Ctrl-C, what was not reached.
[[nodiscard]] TaskRuns run_tasks(std::span<const RunTask> tasks, const RunPlan& plan);

/// Seconds that some of a result's operators took.
[[nodiscard]] double time_of(const RunResult& result, std::span<const std::string> paths);

}  // namespace headroom::cli
