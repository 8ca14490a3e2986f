// Reasons beside the neighbours of the best plan.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "headroom/model_source.h"
#include "headroom/report.h"

using namespace headroom;

namespace {

/// Two parts of an iteration of which others take nothing.
PlanFigures figures_of(double compute_s, double communication_s) {
  PlanFigures figures;
  figures.time.compute_s = compute_s;
  figures.time.communication_s = communication_s;
  figures.time.iteration_s = compute_s + communication_s;
  return figures;
}

/// The reason of a neighbour with these figures beside a best plan of 2 s and 1 s.
std::string reason_of(const PlanFigures& figures) {
  PlanReport report;
  report.question.model = load_model("gpt2");
  report.question.query.purpose = Purpose::train;
  report.plans.resize(1);
  report.plans.front().figures = figures_of(2, 1);
  Neighbour neighbour;
  neighbour.change = "recompute full";
  neighbour.fits = true;
  neighbour.figures = figures;
  neighbour.plan.iteration_s = figures.time.iteration_s;
  report.neighbours = {neighbour};
  RenderOptions options;
  options.format = Format::json;
  const auto json = nlohmann::json::parse(render(report, options));
  return json.at("neighbours").at(0).at("because");
}

}  // namespace

TEST_CASE(
    "a slower plan is explained by what it has more of, a faster one by what it has less of") {
  CHECK(reason_of(figures_of(2.5, 1)) == "500.000 ms more compute");
  CHECK(reason_of(figures_of(1.9, 1.5)) == "500.000 ms more communication");
  CHECK(reason_of(figures_of(2.1, 0.5)) == "faster: 500.000 ms less communication");
}

TEST_CASE("plans whose parts differ are equally fast if their sums are equal") {
  CHECK(reason_of(figures_of(2, 1)) == "equally fast");
  CHECK(reason_of(figures_of(2.5, 0.5)) == "equally fast");
  CHECK(reason_of(figures_of(2.001, 1)) == "equally fast");  // 0.03 %
}
