// Reports of the planner: one plan with its limits (fit), and the best plans (plan).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "headroom/engine_info.h"
#include "headroom/plan.h"

namespace headroom {

/// One plan with all its figures.
struct PlanResult {
  PlanChoice choice;
  PlanFigures figures;
  bool fits = false;
  std::optional<std::int64_t> largest_batch;    ///< 0: none fits; empty: no limit
  std::optional<std::int64_t> largest_context;  ///< likewise
};

/// Serving with other storage formats of weights and KV-cache.
struct FormatFit {
  std::optional<WeightForm> weights;  ///< empty: as stored
  DType kv_dtype = DType::bfloat16;
  Integer total_bytes = 0;
  bool fits = false;
  std::optional<std::int64_t> largest_batch;
};

/// A change to the question after which a plan fits.
struct OtherPlan {
  PlanChoice choice;  ///< the fastest on the fewest devices, in powers of two
  std::int64_t batch_size = 1;
  std::optional<std::int64_t> micro_batch{};  ///< training only
};
struct OtherFormats {
  std::optional<WeightForm> weights;  ///< empty: as stored
  DType kv_dtype = DType::bfloat16;
};
struct OtherRecomputation {
  Recomputation recompute;
};
struct ShorterContext {
  std::int64_t seq_len = 0;
};
struct SmallerBatch {
  std::int64_t batch_size = 0;
};
using Remedy =
    std::variant<OtherPlan, OtherFormats, OtherRecomputation, ShorterContext, SmallerBatch>;

/// The number of sequences of one context length that fit at once.
struct ConcurrencyPoint {
  std::int64_t seq_len = 0;
  std::optional<std::int64_t> largest_batch;
};

/// A planner's input, except the plan.
struct PlanQuestion {
  Model model;
  PlanQuery query;
  DeviceRates rates;
  std::int64_t devices = 1;
  Load load;
  WorkloadImages images;           ///< of one sequence (PlanQuery::images)
  WorkloadAudio audio;             ///< of one sequence (PlanQuery::audio)
  std::vector<std::string> notes;  ///< on the model
};

/// Nine of ten runs take from low to high.
struct RunSeconds {
  double low_s = 0;
  double high_s = 0;
};

/// `headroom fit`: one plan.
struct FitReport {
  PlanQuestion question;
  PlanResult result;
  std::optional<RunSeconds> ttft_range;  ///< of the time of one prompt
  std::vector<Communication> communication;
  StoredWeights storage;                      ///< of the whole model, when serving
  Integer parameters = 0;                     ///< of the whole model
  std::vector<FormatFit> formats;             ///< serving only
  std::vector<ConcurrencyPoint> concurrency;  ///< serving a model with a KV-cache only
  std::vector<Remedy> remedies;               ///< if it does not fit
  /// The command that asks for each remedy, by its index; a front end fills them in.
  std::vector<std::string> remedy_commands;
  std::string engine_command;    ///< of an engine that runs the plan, if it was asked for
  std::optional<Engine> engine;  ///< of that command
  std::vector<std::string> notes;
};

/// Changes after which a plan of `planner` fits; `result` and `formats` are those of `request`.
[[nodiscard]] std::vector<Remedy> remedies_for(Planner& planner, const PlanRequest& request,
                                               const Load& load, const PlanResult& result,
                                               std::span<const FormatFit> formats);

/// Throws IllegalPlan.
[[nodiscard]] FitReport make_fit_report(PlanQuestion question, const PlanRequest& request);

/// `headroom plan`: the best of all legal plans.
struct PlanReport {
  PlanQuestion question;
  PlanSearch search;
  std::vector<PlanResult> plans;      ///< that fit, fastest first
  std::vector<Neighbour> neighbours;  ///< of the first
  std::optional<PlanResult> least;    ///< the plan with the least memory, if none fits
  double search_s = 0;
  std::string engine_command;  ///< as in FitReport, for the first plan
  std::optional<Engine> engine;
  bool lists_front = false;  ///< on screen; JSON always has the Pareto front
  std::vector<std::string> notes;
};

/// Searches a space, as search_plans does.
using PlanSearcher = std::function<PlanSearch(const Planner& planner, const SearchSpace& space)>;

/// Throws Error{invalid_input} if no plan is legal. `search` has the result of search_plans.
[[nodiscard]] PlanReport make_plan_report(PlanQuestion question, SearchSpace space,
                                          const PlanSearcher& search = search_plans);

}  // namespace headroom
