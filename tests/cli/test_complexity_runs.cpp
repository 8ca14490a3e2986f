// Runs of complexity studies: the reasons of those that are skipped.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "complexity_runs.h"
#include "headroom/model_source.h"

using namespace headroom;

namespace {

/// A task of the layer whose cost is stated, not counted.
cli::RunTask task_of(const Model& layer, double flops) {
  WorkloadRequest request;
  request.seq_len = 8;
  request.dtype = DType::float32;
  cli::RunTask task;
  task.model = &layer;
  task.workload = resolve(request, layer.spec);
  task.flops = flops;
  return task;
}

double stated_seconds(const std::string& reason) { return std::stod(reason.substr(8)); }

}  // namespace

TEST_CASE("a run that would take too long is skipped with its own estimate") {
  const Model layer = load_model("layer-rnn");
  // The second one takes at least 10¹² times as long as the first.
  const std::vector<cli::RunTask> tasks{task_of(layer, 1), task_of(layer, 1e12),
                                        task_of(layer, 4e12)};
  cli::RunPlan plan;
  plan.threads = 1;
  plan.rounds = 1;
  const cli::TaskRuns runs = cli::run_tasks(tasks, plan);
  REQUIRE(runs.results.size() == 3);
  CHECK(runs.results[0].was_run());
  REQUIRE(runs.results[1].skipped.starts_with("may take "));
  REQUIRE(runs.results[2].skipped.starts_with("may take "));
  const double second = stated_seconds(runs.results[1].skipped);
  const double third = stated_seconds(runs.results[2].skipped);
  CHECK(third == doctest::Approx(4 * second).epsilon(1e-3));
}

TEST_CASE("a run of another series is not judged by the one before it") {
  const Model layer = load_model("layer-rnn");
  std::vector<cli::RunTask> tasks{task_of(layer, 1), task_of(layer, 1e12), task_of(layer, 1)};
  tasks[2].series = 1;
  cli::RunPlan plan;
  plan.threads = 1;
  plan.rounds = 1;
  const cli::TaskRuns runs = cli::run_tasks(tasks, plan);
  CHECK_FALSE(runs.results[1].was_run());
  CHECK(runs.results[2].was_run());
}
