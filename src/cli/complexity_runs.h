// Measured runs of the complexity studies. Rounds over all lengths spread the machine's drift over
// all of them.
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
  double most_seconds = 5;  ///< longer tasks are skipped
  measured::Backend backend = measured::Backend::eigen;
};

/// One workload of a model.
struct RunTask {
  const Model* model = nullptr;
  Workload workload;
  MeasuredPhase phase = MeasuredPhase::prefill;
  std::int64_t new_tokens = 0;  ///< generate only
  double flops = 1;             ///< matrix FLOPs
  std::size_t series = 0;       ///< tasks of one series follow one another with growing cost
};

/// Times of a task over all rounds.
struct RunResult {
  std::vector<double> samples_s;
  std::vector<OperatorMeasurement> operators;  ///< each with its least time
  std::string skipped;                         ///< why the task was not run; empty if it was

  [[nodiscard]] bool was_run() const noexcept { return !samples_s.empty(); }
  [[nodiscard]] double fastest_s() const;
  [[nodiscard]] double median_s() const;
};

struct TaskRuns {
  std::vector<RunResult> results;  ///< one per task
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
};

/// Runs all tasks with random weights. Skips, with the reason, tasks that would take too long or
/// too much memory, and after a signal those that were not reached. Throws the first error if no
/// task was run.
[[nodiscard]] TaskRuns run_tasks(std::span<const RunTask> tasks, const RunPlan& plan);

/// Seconds of the operators with these paths.
[[nodiscard]] double time_of(const RunResult& result, std::span<const std::string> paths);

}  // namespace headroom::cli
