#include "complexity_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "headroom/error.h"
#include "interruption.h"
#include "output.h"
#include "progress.h"
#include "setting_options.h"

namespace headroom::cli {
namespace {

/// Time measured of one task per round, if it takes several runs.
constexpr double kTurnSeconds = 0.03;
constexpr int kMostRunsPerTurn = 20;
constexpr int kFirstRuns = 2;

int runs_of_turn(const RunResult& result) {
  if (!result.was_run()) return kFirstRuns;
  const double runs = std::ceil(kTurnSeconds / result.fastest_s());
  return static_cast<int>(std::clamp(runs, 1.0, double{kMostRunsPerTurn}));
}

/// The number of tokens that the task's cost grows with.
std::int64_t extent_of(const RunTask& task) {
  return task.phase == MeasuredPhase::generate ? task.new_tokens : task.workload.seq_len;
}

void keep_least(const std::vector<OperatorMeasurement>& operators, RunResult& result) {
  if (result.operators.empty()) {
    result.operators = operators;
    return;
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    result.operators[i].time_s = std::min(result.operators[i].time_s, operators[i].time_s);
  }
}

bool is_interrupted() { return detail::interruption() != 0; }

class TaskRunner {
 public:
  TaskRunner(std::span<const RunTask> tasks, const RunPlan& plan) : tasks_(tasks), plan_(plan) {
    runs_.results.resize(tasks.size());
  }

  TaskRuns run() && {
    detail::end_at_next_step();
    for (int round = 0; round < plan_.rounds; ++round) {
      for (std::size_t i = 0; i < tasks_.size() && !is_interrupted(); ++i) {
        const double done = static_cast<double>(round) * static_cast<double>(tasks_.size()) +
                            static_cast<double>(i);
        const double all = plan_.rounds * static_cast<double>(tasks_.size());
        (void)show_progress(done / all,
                            fmt::format("round {} of {} · {} · {} tokens", round + 1, plan_.rounds,
                                        tasks_[i].model->spec.name, extent_of(tasks_[i])));
        if (runs_.results[i].skipped.empty()) take_turn(i);
      }
    }
    clear_progress();
    if (is_interrupted()) {
      note_interrupt();
    } else if (failure_ && std::ranges::none_of(runs_.results, &RunResult::was_run)) {
      throw *failure_;  // without one time, nothing was measured
    }
    return std::move(runs_);
  }

 private:
  void take_turn(std::size_t i) {
    RunResult& result = runs_.results[i];
    if (!result.was_run()) {
      result.skipped = too_long(i);
      if (!result.skipped.empty()) return;
    }
    try {
      const Measurement measurement = measure(tasks_[i], runs_of_turn(result));
      const std::vector<double>& samples = measurement.time.samples_s;
      result.samples_s.insert(result.samples_s.end(), samples.begin(), samples.end());
      keep_least(measurement.operators, result);
      runs_.context = measurement.context;
    } catch (const detail::Interrupted&) {
      return;  // the loop over tasks ends
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) throw;
      result.skipped = with_options(error.message());
      if (!failure_) failure_ = error;
    }
  }

  [[nodiscard]] Measurement measure(const RunTask& task, int runs) const {
    measured::MeasureOptions options;
    options.phase = task.phase;
    options.backend = plan_.backend;
    options.threads = plan_.threads;
    options.warmup = 1;
    options.runs = runs;
    options.new_tokens = task.new_tokens;
    const auto source = measured::random_weights(options.seed);
    return measured::measure(*task.model, task.workload, *source, std::nullopt, options,
                             [](int, int) { return !is_interrupted(); });
  }

  /// Why a task would take too long, extrapolated from the last one of its series that ran; empty
  /// if it would not. One after a task that failed is not tried.
  [[nodiscard]] std::string too_long(std::size_t i) {
    std::size_t last = i;
    do {
      if (last == 0 || tasks_[last - 1].series != tasks_[i].series) return {};
      --last;
    } while (estimated_.contains(last));
    const RunResult& before = runs_.results[last];
    if (!before.was_run()) return before.skipped;
    // Longer sequences use the processor at least as well, so time grows at most as FLOPs do.
    const double estimate = before.fastest_s() * tasks_[i].flops / tasks_[last].flops;
    if (estimate <= plan_.most_seconds) return {};
    estimated_.insert(i);
    return fmt::format("may take {:.1f} s, more than --most-seconds {:g}", estimate,
                       plan_.most_seconds);
  }

  void note_interrupt() {
    runs_.notes.push_back(interruption_note());
    for (RunResult& result : runs_.results) {
      if (!result.was_run() && result.skipped.empty()) result.skipped = "interrupted";
    }
  }

  std::span<const RunTask> tasks_;
  RunPlan plan_;
  TaskRuns runs_;
  std::set<std::size_t> estimated_;  ///< tasks that would take too long
  std::optional<Error> failure_;     ///< the first
};

}  // namespace

double RunResult::fastest_s() const { return *std::ranges::min_element(samples_s); }

double RunResult::median_s() const { return summarize(samples_s).median_s; }

TaskRuns run_tasks(std::span<const RunTask> tasks, const RunPlan& plan) {
  TaskRuns runs = TaskRunner(tasks, plan).run();
  const std::string why = runs.context ? disturbance_of(*runs.context) : "";
  if (!why.empty()) runs.notes.push_back(why + " during the runs");
  return runs;
}

double time_of(const RunResult& result, std::span<const std::string> paths) {
  double time_s = 0;
  for (const OperatorMeasurement& one : result.operators) {
    if (std::ranges::find(paths, one.path) != paths.end()) time_s += one.time_s;
  }
  return time_s;
}

}  // namespace headroom::cli
