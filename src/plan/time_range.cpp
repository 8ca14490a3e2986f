// Range of a plan's time, by which of its parts published runs are furthest from.
#include <algorithm>

#include "planner.h"
#include "step_time.h"

namespace headroom {
namespace {

/// Two batches at best, and balanced experts: published deployments took up to half as long again
/// (docs/device-time.md).
constexpr double kOverlapRange = 0.55;
/// Training with experts: eight of nine published steps (reports/published.md) took less than 1.85
/// times as long as predicted. Their GEMMs have rows of all sizes, and dispatch has kernels of its
/// own.
constexpr double kExpertTrainingRange = 0.85;
/// Training that shards gradients or weights: nine of ten of MosaicML's and torchtitan's steps on
/// A100 and H100 lie within (reports/published.md).
constexpr double kShardedTrainingRange = 0.2;

}  // namespace

double Planner::Implementation::time_range(const PlanChoice& choice, double compute_share) const {
  double range = rates.time_range.of(compute_share);
  if (choice.parallel.batch_overlap == BatchOverlap::two_batches)
    range = std::max(range, kOverlapRange);
  const bool trains = query.purpose == Purpose::train;
  const bool trains_experts = trains && graph.sizes.get(Symbol::num_experts).value_or(0) > 0;
  const bool in_pytorch = trains && detail::passes_of(choice, query.states, rates).backward > 1;
  // Fitted rates have a range of their own.
  const bool is_fitted = rates.efficiency_origin == EfficiencyOrigin::fitted;
  if (trains_experts && !is_fitted) range = std::max(range, kExpertTrainingRange);
  if (in_pytorch && !is_fitted) range = std::max(range, kShardedTrainingRange);
  return range;
}

double Planner::time_range(const PlanChoice& choice, double compute_share) const {
  return implementation_->time_range(choice, compute_share);
}

}  // namespace headroom
