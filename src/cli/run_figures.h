// Figures that a run measured, beside their predictions: for `calibrate --from`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/compare.h"
#include "headroom/rate_fit.h"
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

struct RunFigureInfo {
  RunFigure figure;
  std::string_view key;  ///< of a line; empty for a figure that only imports have
  bool of_fit;
  bool of_serve;
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
