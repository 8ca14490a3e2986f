// Reports of the planner: one plan with its limits (fit), and the best plans (plan).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/model_source.h"
#include "headroom/plan.h"
#include "headroom/plan_search.h"

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
  WeightFormat weights = WeightFormat::bfloat16;
  DType kv_dtype = DType::bfloat16;
  Integer total_bytes = 0;
  bool fits = false;
  std::optional<std::int64_t> largest_batch;
};

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
};

/// `headroom fit`: one plan.
struct FitReport {
  PlanQuestion question;
  PlanResult result;
  std::vector<Communication> communication;
  std::vector<FormatFit> formats;             ///< serving only
  std::vector<ConcurrencyPoint> concurrency;  ///< serving a model with a KV-cache only
  std::vector<std::string> notes;
};

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
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} if no plan is legal.
[[nodiscard]] PlanReport make_plan_report(PlanQuestion question, SearchSpace space);

}  // namespace headroom
