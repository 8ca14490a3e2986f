// Range of a plan's time, by which of its parts published runs are furthest from.
#include <algorithm>
#include <cmath>

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
/// Training with collectives beside GEMMs: its time over that without is off by up to 7 %
/// (torchtitan's steps, reports/published.md), independently of the time without.
constexpr double kTensorOverlapRange = 0.07;
/// Training with activations on the host, of which no step is published: copies alone reach from 66
/// % of their link (295 of 450 GB/s on GH200, github.com/vllm-project/vllm/pull/6496) to 93 % (210
/// of 225 on GB300, github.com/sgl-project/sglang/pull/40278).
constexpr double kHostCopyRange = 0.52;

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
  if (choice.step.offload_layers > 0) range = std::max(range, kHostCopyRange);
  if (choice.step.tensor_overlap == TensorOverlap::on)
    range = std::hypot(range, kTensorOverlapRange);
  return range;
}

double Planner::time_range(const PlanChoice& choice, double compute_share) const {
  return implementation_->time_range(choice, compute_share);
}

}  // namespace headroom
