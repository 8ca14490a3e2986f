#include "run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "enum_table.h"
#include "headroom/error.h"

namespace headroom::cli {
namespace {

/// Latencies of NIM with the rates of one row: nine of ten TTFT are off by up to 28 to 48 %, TPOT
/// by up to 24 to 36 % (reports/published.md). The least with whose range nine of ten lie within.
constexpr double kFirstTokenDeviation = 0.20;
constexpr double kTokenDeviation = 0.15;

constexpr RunFigureInfo kFigures[] = {
    {RunFigure::time, "time_s", true, true},
    {RunFigure::ttft, "ttft_s", true, true, kFirstTokenDeviation},
    {RunFigure::tpot, "tpot_s", true, true, kTokenDeviation},
    {RunFigure::end_to_end, "end_to_end_s", false, true, kTokenDeviation},
    {RunFigure::pass, "", true, false},
    {RunFigure::generation, "", true, false},
    {RunFigure::tokens_per_s, "tokens_per_s", true, true},
    {RunFigure::output_tokens_per_s, "output_tokens_per_s", false, true},
};
static_assert(detail::lists_every<kFigures>(&RunFigureInfo::figure));

[[noreturn]] void refuse(const MeasuredFigure& figure, std::string_view reason) {
  throw_invalid_input(fmt::format("\"{}\" {}", info(figure.figure).key, reason),
                      "state a figure that the command prints");
}

/// Seconds that a plan's figure takes. Of a rate, those of one iteration's tokens.
double seconds_of(Planner& planner, const PlanChoice& choice, const Load& load,
                  const MeasuredFigure& figure) {
  const PlanTime time = planner.evaluate(choice, load).time;
  switch (figure.figure) {
    case RunFigure::ttft:
      return time.ttft_s.value();
    case RunFigure::pass:
      return time.ttft_s.value_or(time.iteration_s);
    case RunFigure::generation: {
      // The middle step has the mean length of the steps.
      const Load middle{load.batch_size, load.seq_len + figure.new_tokens / 2};
      const double step_s = planner.evaluate(choice, middle).time.iteration_s;
      return time.ttft_s.value() + static_cast<double>(figure.new_tokens - 1) * step_s;
    }
    case RunFigure::time:
    case RunFigure::tpot:
    case RunFigure::tokens_per_s:
    case RunFigure::end_to_end:
    case RunFigure::output_tokens_per_s:
      break;
  }
  return time.iteration_s;
}

/// Throws for times of prompts and steps of a model that has none, and for a pass over several
/// prompts, of which a plan predicts one.
void require_predicted(const Planner& planner, const Load& load, const MeasuredFigure& figure) {
  switch (figure.figure) {
    case RunFigure::ttft:
    case RunFigure::tpot:
    case RunFigure::generation:
      if (!planner.decodes()) refuse(figure, "is of a decoder that serves");
      return;
    case RunFigure::pass:
      if (!planner.decodes() || load.batch_size == 1) return;
      throw_invalid_input(
          fmt::format("{} prompts were prefilled at once, and fit predicts one", load.batch_size),
          "leave those runs out of the file");
    case RunFigure::time:
    case RunFigure::tokens_per_s:
    case RunFigure::end_to_end:
    case RunFigure::output_tokens_per_s:
      break;
  }
}

/// Rates of requests that come by themselves say how fast they come.
void require_saturated(const ServedRun& served, const MeasuredFigure& figure) {
  switch (figure.figure) {
    case RunFigure::time:
    case RunFigure::tokens_per_s:
    case RunFigure::output_tokens_per_s:
      if (std::holds_alternative<UserArrivals>(served.question.traffic.arrivals)) return;
      throw_invalid_input(
          "requests at given times say how fast they come, not how fast a device is",
          "measure with as many users as requests run at once, and state --users");
    case RunFigure::ttft:
    case RunFigure::tpot:
    case RunFigure::end_to_end:
    case RunFigure::pass:
    case RunFigure::generation:
      break;
  }
}

/// Seconds of a simulation's figure. Of a rate, those of all requests.
double seconds_of(const ServeFigures& figures, const MeasuredFigure& figure) {
  switch (figure.figure) {
    case RunFigure::ttft:
      return figures.ttft.p50;
    case RunFigure::tpot:
      if (!figures.tpot) refuse(figure, "is of answers with more than one token");
      return figures.tpot->p50;
    case RunFigure::end_to_end:
      return figures.end_to_end.p50;
    case RunFigure::time:
    case RunFigure::tokens_per_s:
    case RunFigure::output_tokens_per_s:
    case RunFigure::pass:
    case RunFigure::generation:
      break;
  }
  return figures.duration_s;
}

/// The measured seconds, of a figure that is a rate of `tokens_per_s` over `seconds` by prediction.
double measured_seconds(const MeasuredFigure& figure, double tokens_per_s, double seconds) {
  return tokens_per_s * seconds / figure.value;
}

}  // namespace

std::span<const RunFigureInfo> run_figures() noexcept { return kFigures; }

const RunFigureInfo& info(RunFigure figure) noexcept {
  return kFigures[static_cast<std::size_t>(figure)];
}

MeasuredRun measured_plan(const PlanQuestion& question, const PlanRequest& request,
                          const MeasuredFigure& figure) {
  if (!info(figure.figure).of_fit) refuse(figure, "is no figure of a fit command");
  MeasuredRun run;
  run.question = question;
  run.request = request;
  const PlanChoice choice = resolve(request, question.load);
  const auto planner =
      std::make_shared<Planner>(question.model.spec, question.query, question.rates);
  require_legal(choice, question.load, planner->limits(question.load.seq_len));
  require_predicted(*planner, question.load, figure);
  run.time_s = figure.value;
  run.published_deviation = info(figure.figure).published_deviation;
  if (figure.figure == RunFigure::time) return run;
  if (figure.figure == RunFigure::tokens_per_s) {
    const PlanTime time = planner->evaluate(choice, question.load).time;
    run.time_s = measured_seconds(figure, time.tokens_per_s, time.iteration_s);
  }
  run.seconds = [planner, choice, load = question.load, figure](const DeviceRates& rates) {
    planner->set_rates(rates);
    return seconds_of(*planner, choice, load, figure);
  };
  return run;
}

MeasuredRun measured_service(const ServedRun& served, const MeasuredFigure& figure) {
  if (!info(figure.figure).of_serve) refuse(figure, "is no figure of a serve command");
  require_saturated(served, figure);
  MeasuredRun run;
  run.question = served.question.plan;
  run.request = served.request;
  const ServeFigures figures = simulate(served.question, served.request.choice).figures;
  run.time_s = figure.value;
  run.published_deviation = info(figure.figure).published_deviation;
  // Requests are received, split into tokens and answered: 3 to 5 ms of Llama 3 8B's shortest
  // prompts by NIM (reports/published.md), which no step has.
  if (figure.figure == RunFigure::ttft) run.unmodelled_s = 5e-3;
  if (figure.figure == RunFigure::output_tokens_per_s) {
    run.time_s = measured_seconds(figure, figures.output_tokens_per_s, figures.duration_s);
  } else if (figure.figure == RunFigure::tokens_per_s) {
    const double both = figures.input_tokens_per_s + figures.output_tokens_per_s;
    run.time_s = measured_seconds(figure, both, figures.duration_s);
  }
  run.seconds = [served, figure](const DeviceRates& rates) {
    ServeQuestion question = served.question;
    question.plan.rates = rates;
    return seconds_of(simulate(question, served.request.choice).figures, figure);
  };
  return run;
}

}  // namespace headroom::cli
