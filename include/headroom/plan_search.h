// Exhaustive search over all legal plans for a number of devices, and the neighbours of the best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/plan.h"

namespace headroom {

/// Degrees that are given; the search varies the others.
struct FixedDegrees {
  std::optional<std::int64_t> tensor;
  std::optional<SequenceParallel> sequence;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> interleave;
  std::optional<std::int64_t> data;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> expert;
  std::optional<std::int64_t> micro_batch;
  std::optional<Recomputation> recompute;
  std::optional<Zero> zero;
};

struct SearchSpace {
  std::int64_t devices = 1;
  Load load;
  FixedDegrees fixed;
  std::size_t keep = 10;  ///< number of best plans to return
  int threads = 0;        ///< 0: as many as the machine has
};

struct RankedPlan {
  PlanChoice choice;
  Integer memory_bytes = 0;
  double iteration_s = 0;
};

struct PlanSearch {
  std::uint64_t evaluated = 0;  ///< legal plans
  std::uint64_t fitting = 0;
  std::vector<RankedPlan> best;     ///< fastest first; equal times by memory
  std::vector<RankedPlan> pareto;   ///< no other plan is both smaller and faster; fastest first
  std::optional<RankedPlan> least;  ///< the plan with the least memory, if none fits
};

/// Evaluates all legal plans of `space`. The result does not depend on the number of threads.
/// Throws Error{overflow}.
[[nodiscard]] PlanSearch search_plans(const Planner& planner, const SearchSpace& space);

/// A plan that differs from another in one decision.
struct Neighbour {
  std::string change;  ///< "tp 4, dp 2", "without sp", …
  RankedPlan plan;
  PlanFigures figures;
  bool fits = false;
};

/// All legal plans one decision away from `choice`.
[[nodiscard]] std::vector<Neighbour> neighbours_of(Planner& planner, const PlanChoice& choice,
                                                   const Load& load);

}  // namespace headroom
