// A whole training run from one of its steps.
#include "headroom/train_time.h"

#include <fmt/format.h>

#include <cmath>

#include "headroom/analysis.h"
#include "headroom/no_plan_fits.h"

namespace headroom {
namespace {

double gib(Integer bytes) {
  constexpr double kGib = 1U << 30U;
  return static_cast<double>(bytes) / kGib;
}

/// The fastest plan of the request's degrees.
PlanResult fastest_plan(const PlanQuestion& question, const FixedDegrees& fixed,
                        const std::function<void(double)>& progress) {
  SearchSpace space;
  space.progress = progress;
  space.fixed = fixed;
  space.keep = 1;
  PlanReport report = make_plan_report(question, space);
  if (report.plans.empty()) {
    throw NoPlanFits(
        fmt::format("no plan on {} × {} fits a training step: the smallest needs {:.2f} GiB of "
                    "{:.2f} on each device",
                    question.devices, question.rates.name,
                    gib(report.least.value().figures.memory.total()),
                    gib(question.rates.memory_bytes)),
        "take more devices, another machine, or a smaller batch");
  }
  return report.plans.front();
}

}  // namespace

TrainTimeReport make_train_time_report(PlanQuestion question, const FixedDegrees& fixed,
                                       const TrainingBudget& budget,
                                       const std::function<void(double)>& progress) {
  TrainTimeReport report;
  report.plan = fastest_plan(question, fixed, progress);
  report.budget = budget;
  const PlanTime& step = report.plan.figures.time;
  const double tokens_per_step =
      static_cast<double>(question.load.batch_size) * static_cast<double>(question.load.seq_len);
  report.steps = std::ceil(budget.tokens / tokens_per_step);
  report.seconds = report.steps * step.iteration_s / budget.availability;
  report.low_s = report.steps * step.low_s / budget.availability;
  report.high_s = report.steps * step.high_s / budget.availability;
  const auto devices = static_cast<double>(question.devices);
  if (budget.power_w) report.energy_j = *budget.power_w * devices * report.seconds;
  constexpr double kSecondsPerHour = 3600;
  report.device_hours = devices * report.seconds / kSecondsPerHour;
  if (budget.price_per_hour) report.price = report.device_hours * *budget.price_per_hour;
  const Graph graph = build_graph(question.model.spec, {Phase::train, question.query.attention});
  const ParameterCount parameters = count_parameters(graph);
  report.active_parameters = parameters.active.evaluate(graph.sizes);
  const auto active = static_cast<double>(report.active_parameters);
  report.six_nd = 6 * active * budget.tokens;
  report.eight_nd = 8 * active * budget.tokens;
  const double peak = question.rates.flops_per_s * devices * report.seconds;
  report.six_nd_share = report.six_nd / peak;
  report.eight_nd_share = report.eight_nd / peak;
  if (question.query.adapter.kind != AdapterKind::none) report.flops_per_parameter = 4;
  report.question = std::move(question);
  return report;
}

}  // namespace headroom
