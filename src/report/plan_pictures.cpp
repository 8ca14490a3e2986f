// Time and memory of every plan that fits: the front is at the lower left.
#include <fmt/format.h>

#include "describe.h"
#include "picture.h"
#include "pictures.h"
#include "plan_words.h"
#include "units.h"
#include "with_noun.h"

namespace headroom::detail {

std::vector<std::string> pictures_of(const PlanReport& report) {
  if (report.plans.size() < 2) return {};
  const Purpose purpose = report.question.query.purpose;
  const Unit unit = byte_unit(report.question.rates.memory_bytes);
  PlotSeries series{"plans that fit", Drawn::points};
  for (const PlanResult& plan : report.plans) {
    const double time_ms = plan.figures.time.iteration_s * 1e3;
    const Integer memory = plan.figures.memory.total();
    series.points.push_back({time_ms, static_cast<double>(memory) / static_cast<double>(unit.size),
                             fmt::format("{}: {:.4g} ms, {}", describe(plan.choice, purpose),
                                         time_ms, describe_bytes(memory))});
  }
  const PlotPoint best{series.points.front().x, series.points.front().y,
                       describe(report.plans.front().choice, purpose)};
  return {
      plot({"Time and memory of the plans that fit",
            fmt::format("{}; the fastest is {}",
                        with_noun(static_cast<Integer>(report.plans.size()), "plan"), best.name),
            {"time of a step [ms]"},
            {fmt::format("memory of a device [{}]", unit.name)},
            {std::move(series)},
            best})};
}

}  // namespace headroom::detail
