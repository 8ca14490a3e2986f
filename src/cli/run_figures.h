// Figures that a run measured, beside their predictions: for `calibrate --from`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/rate_fit.h"
#include "headroom/serve.h"
#include "plan_options.h"
#include "serve_command.h"

namespace headroom::cli {

/// A figure of a measured run. Those of a `serve` command are medians over its requests, and rates
/// over all of them.
enum class RunFigure {
  time,                 ///< fit: one iteration; serve: all requests
  ttft,                 ///< fit: the prefill of one prompt
  tpot,                 ///< fit: a decode step
  end_to_end,           ///< serve: one request
  pass,                 ///< fit: of one prompt, or of an encoder's batch; of imports only
  generation,           ///< fit: one prompt and its answer; of imports only
  tokens_per_s,         ///< fit: as it prints them; serve: input and output
  output_tokens_per_s,  ///< serve
};

/// A plan with its load, of which a figure was measured.
struct MeasuredPlan {
  Planner& planner;
  const PlanChoice& choice;
  const Load& load;
  std::int64_t new_tokens = 0;  ///< of a generation
};

/// Models and loads that have a figure of a plan.
enum class PlansWithFigure {
  all,
  decoders,    ///< those that serve
  one_prompt,  ///< of decoders, a plan predicts the prefill of one prompt; of others, any pass
};

/// A figure as a plan predicts it.
struct PlanFigure {
  PlansWithFigure plans = PlansWithFigure::all;
  /// Seconds; of a rate, those of one iteration's tokens.
  double (*seconds)(const MeasuredPlan& plan) = nullptr;
  double (*tokens_per_s)(const PlanTime& time) = nullptr;  ///< of a rate, over those seconds
};

/// Requests whose simulation says how fast a device is: those that come by themselves set a rate.
enum class RequestsWithFigure { all, of_users };

/// A figure as the simulation of requests predicts it.
struct ServiceFigure {
  RequestsWithFigure requests = RequestsWithFigure::all;
  /// Seconds; of a rate, those of all requests. Empty: no answer has more than one token.
  std::optional<double> (*seconds)(const ServeFigures& figures) = nullptr;
  double (*tokens_per_s)(const ServeFigures& figures) = nullptr;  ///< of a rate
  double unmodelled_s = 0;                                        ///< as MeasuredRun's
};

struct RunFigureInfo {
  RunFigure figure;
  std::string_view key;  ///< of a line; empty for a figure that only imports have
  std::optional<PlanFigure> of_fit{};
  std::optional<ServiceFigure> of_serve{};
  std::optional<double> published_deviation{};  ///< as MeasuredRun's
};

/// Every figure.
[[nodiscard]] std::span<const RunFigureInfo> run_figures() noexcept;
[[nodiscard]] const RunFigureInfo& info(RunFigure figure) noexcept;

/// A measured figure: seconds, or tokens per second.
struct MeasuredFigure {
  RunFigure figure = RunFigure::time;
  double value = 0;
  std::int64_t new_tokens = 0;  ///< of a generation
};

/// A measured `fit` plan. Throws Error{invalid_input} for a figure that it does not predict.
[[nodiscard]] MeasuredRun measured_plan(const PlanQuestion& question, const PlanRequest& request,
                                        const MeasuredFigure& figure);

/// A measured `serve` simulation. Throws Error{invalid_input} likewise, and for a rate that the
/// arrivals set.
[[nodiscard]] MeasuredRun measured_service(const ServedRun& served, const MeasuredFigure& figure);

}  // namespace headroom::cli
