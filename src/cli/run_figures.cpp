#include "run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "enum_table.h"
#include "headroom/error.h"

namespace headroom::cli {
namespace {

/// Latencies of NIM with the rates of one row: nine of ten TTFT are off by up to 31 to 44 %, TPOT
/// by up to 17 to 20 %, and by 24 to 36 % where the attention of its decode steps is not stated
/// (reports/published.md). The least with whose range nine of ten lie within.
constexpr double kFirstTokenDeviation = 0.20;
constexpr double kTokenDeviation = 0.15;

/// Requests are received, split into tokens and answered: 3 to 5 ms of Llama 3 8B's shortest
/// prompts by NIM (reports/published.md), which no step has.
constexpr double kReception = 5e-3;

PlanTime time_of(const MeasuredPlan& plan) {
  return plan.planner.evaluate(plan.choice, plan.load).time;
}

double iteration_seconds(const MeasuredPlan& plan) { return time_of(plan).iteration_s; }

double prefill_seconds(const MeasuredPlan& plan) { return time_of(plan).ttft_s.value(); }

double pass_seconds(const MeasuredPlan& plan) {
  const PlanTime time = time_of(plan);
  return time.ttft_s.value_or(time.iteration_s);
}

/// The middle step has the mean length of the steps.
double generation_seconds(const MeasuredPlan& plan) {
  const Load middle{plan.load.batch_size, plan.load.seq_len + plan.new_tokens / 2};
  const double step_s = plan.planner.evaluate(plan.choice, middle).time.iteration_s;
  return prefill_seconds(plan) + static_cast<double>(plan.new_tokens - 1) * step_s;
}

double tokens_of_iteration(const PlanTime& time) { return time.tokens_per_s; }

std::optional<double> duration_of(const ServeFigures& figures) { return figures.duration_s; }

std::optional<double> median_ttft(const ServeFigures& figures) { return figures.ttft.p50; }

std::optional<double> median_tpot(const ServeFigures& figures) {
  return figures.tpot ? std::optional(figures.tpot->p50) : std::nullopt;
}

std::optional<double> median_request(const ServeFigures& figures) { return figures.end_to_end.p50; }

double output_tokens(const ServeFigures& figures) { return figures.output_tokens_per_s; }

double all_tokens(const ServeFigures& figures) {
  return figures.input_tokens_per_s + figures.output_tokens_per_s;
}

constexpr RunFigureInfo kRunFigures[] = {
    {.figure = RunFigure::time,
     .key = "time_s",
     .of_fit = PlanFigure{.seconds = iteration_seconds},
     .of_serve = ServiceFigure{.requests = RequestsWithFigure::of_users, .seconds = duration_of}},
    {.figure = RunFigure::ttft,
     .key = "ttft_s",
     .of_fit = PlanFigure{.plans = PlansWithFigure::decoders, .seconds = prefill_seconds},
     .of_serve = ServiceFigure{.seconds = median_ttft, .unmodelled_s = kReception},
     .published_deviation = kFirstTokenDeviation},
    {.figure = RunFigure::tpot,
     .key = "tpot_s",
     .of_fit = PlanFigure{.plans = PlansWithFigure::decoders, .seconds = iteration_seconds},
     .of_serve = ServiceFigure{.seconds = median_tpot},
     .published_deviation = kTokenDeviation},
    {.figure = RunFigure::end_to_end,
     .key = "end_to_end_s",
     .of_serve = ServiceFigure{.seconds = median_request},
     .published_deviation = kTokenDeviation},
    {.figure = RunFigure::pass,
     .key = "",
     .of_fit = PlanFigure{.plans = PlansWithFigure::one_prompt, .seconds = pass_seconds}},
    {.figure = RunFigure::generation,
     .key = "",
     .of_fit = PlanFigure{.plans = PlansWithFigure::decoders, .seconds = generation_seconds}},
    {.figure = RunFigure::tokens_per_s,
     .key = "tokens_per_s",
     .of_fit = PlanFigure{.seconds = iteration_seconds, .tokens_per_s = tokens_of_iteration},
     .of_serve = ServiceFigure{.requests = RequestsWithFigure::of_users,
                               .seconds = duration_of,
                               .tokens_per_s = all_tokens}},
    {.figure = RunFigure::output_tokens_per_s,
     .key = "output_tokens_per_s",
     .of_serve = ServiceFigure{.requests = RequestsWithFigure::of_users,
                               .seconds = duration_of,
                               .tokens_per_s = output_tokens}},
};
static_assert(detail::lists_every<kRunFigures>(&RunFigureInfo::figure));

[[noreturn]] void refuse(const MeasuredFigure& figure, std::string_view reason) {
  throw_invalid_input(fmt::format("\"{}\" {}", info(figure.figure).key, reason),
                      "state a figure that the command prints");
}

/// The figure of a fit command. Throws for times of prompts and steps of a model that has none, and
/// for a pass over several prompts, of which a plan predicts one.
const PlanFigure& predicted_by(const Planner& planner, const Load& load,
                               const MeasuredFigure& figure) {
  const PlanFigure& known = *info(figure.figure).of_fit;
  if (known.plans == PlansWithFigure::decoders && !planner.decodes()) {
    refuse(figure, "is of a decoder that serves");
  }
  if (known.plans == PlansWithFigure::one_prompt && planner.decodes() && load.batch_size != 1) {
    throw_invalid_input(
        fmt::format("{} prompts were prefilled at once, and fit predicts one", load.batch_size),
        "leave those runs out of the file");
  }
  return known;
}

/// The figure of a serve command. Throws if it is none, and for a rate of requests that come by
/// themselves, which says how fast they come.
const ServiceFigure& predicted_by(const ServedRun& served, const MeasuredFigure& figure) {
  const std::optional<ServiceFigure>& known = info(figure.figure).of_serve;
  if (!known) refuse(figure, "is not a figure of a serve command");
  const bool of_users = std::holds_alternative<UserArrivals>(served.question.traffic.arrivals);
  if (known->requests == RequestsWithFigure::of_users && !of_users) {
    throw_invalid_input("requests at given times say how fast they come, not how fast a device is",
                        "measure with as many users as requests run at once, and state --users");
  }
  return *known;
}

/// Seconds of a simulation's figure. Throws for times between tokens of answers with one token.
double seconds_of(const ServiceFigure& known, const ServeFigures& figures,
                  const MeasuredFigure& figure) {
  const std::optional<double> seconds = known.seconds(figures);
  if (!seconds) refuse(figure, "is of answers with more than one token");
  return *seconds;
}

/// The measured seconds, of a figure that is a rate of `tokens_per_s` over `seconds` by prediction.
double measured_seconds(const MeasuredFigure& figure, double tokens_per_s, double seconds) {
  return tokens_per_s * seconds / figure.value;
}

}  // namespace

std::span<const RunFigureInfo> run_figures() noexcept { return kRunFigures; }

const RunFigureInfo& info(RunFigure figure) noexcept {
  return kRunFigures[static_cast<std::size_t>(figure)];
}

MeasuredRun measured_plan(const PlanQuestion& question, const PlanRequest& request,
                          const MeasuredFigure& figure) {
  if (!info(figure.figure).of_fit) refuse(figure, "is not a figure of a fit command");
  MeasuredRun run;
  run.question = question;
  run.request = request;
  const PlanChoice choice = resolve(request, question.load);
  const auto planner =
      std::make_shared<Planner>(question.model.spec, question.query, question.rates);
  require_legal(choice, question.load, planner->limits(question.load.seq_len));
  const PlanFigure& known = predicted_by(*planner, question.load, figure);
  run.time_s = figure.value;
  run.published_deviation = info(figure.figure).published_deviation;
  if (figure.figure == RunFigure::time) return run;
  if (known.tokens_per_s != nullptr) {
    const PlanTime time = planner->evaluate(choice, question.load).time;
    run.time_s = measured_seconds(figure, known.tokens_per_s(time), time.iteration_s);
  }
  run.seconds = [planner, choice, load = question.load, figure,
                 seconds = known.seconds](const DeviceRates& rates) {
    planner->set_rates(rates);
    return seconds({*planner, choice, load, figure.new_tokens});
  };
  return run;
}

MeasuredRun measured_service(const ServedRun& served, const MeasuredFigure& figure) {
  const ServiceFigure& known = predicted_by(served, figure);
  MeasuredRun run;
  run.question = served.question.plan;
  run.request = served.request;
  const ServeFigures figures = simulate(served.question, served.request.choice).figures;
  run.time_s = figure.value;
  run.published_deviation = info(figure.figure).published_deviation;
  run.unmodelled_s = known.unmodelled_s;
  if (known.tokens_per_s != nullptr) {
    run.time_s = measured_seconds(figure, known.tokens_per_s(figures), figures.duration_s);
  }
  run.seconds = [served, figure, known](const DeviceRates& rates) {
    ServeQuestion question = served.question;
    question.plan.rates = rates;
    const ServeFigures predicted = simulate(question, served.request.choice).figures;
    return seconds_of(known, predicted, figure);
  };
  return run;
}

}  // namespace headroom::cli
