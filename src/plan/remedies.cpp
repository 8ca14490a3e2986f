// Changes to a question whose plan does not fit, after which one does.
#include <algorithm>

#include "headroom/fewest_devices.h"
#include "headroom/plan_report.h"

namespace headroom {
namespace {

/// More devices are not tried: a model that needs them is not sized by this command.
constexpr std::int64_t kMostDevices = 1024;

/// The step that `request` describes. Its degrees stay free.
FixedDegrees step_of(const PlanRequest& request) {
  const PlanChoice& choice = request.choice;
  FixedDegrees fixed;
  fixed.interleave = 1;
  fixed.micro_batch = request.micro_batch;
  fixed.recompute = choice.recompute;
  fixed.zero = choice.zero;
  fixed.step = choice.step;
  if (choice.step.tensor_overlap == TensorOverlap::on) fixed.sequence = SequenceParallel::on;
  fixed.expert_tensor = choice.parallel.expert_tensor;
  fixed.expert_exchange = choice.parallel.expert_exchange;
  fixed.batch_overlap = choice.parallel.batch_overlap;
  return fixed;
}

/// The step of `request` on the fewest devices, `devices` or more, if one fits.
void add_devices(Planner& planner, const PlanRequest& request, const Load& load,
                 std::int64_t devices, std::vector<Remedy>& remedies) {
  const auto plan =
      plan_on_fewest_devices(planner, load, step_of(request), {devices, kMostDevices});
  if (!plan) return;
  OtherPlan other{plan->choice, load.batch_size};
  if (planner.query().purpose == Purpose::train) other.micro_batch = plan->choice.micro_batch;
  remedies.emplace_back(other);
}

void add_recomputation(Planner& planner, PlanRequest request, const Load& load,
                       std::vector<Remedy>& remedies) {
  const bool applies =
      planner.query().purpose == Purpose::train && request.choice.step.offload_layers == 0;
  if (!applies) return;
  request.choice.recompute = {Recompute::full, 1};
  if (planner.fits(planner.evaluate(resolve(request, load), load))) {
    remedies.emplace_back(OtherRecomputation{request.choice.recompute});
  }
}

/// The largest legal batch of at most `batch`: interleaving needs as many micro-batches as stages,
/// or a multiple. 0 if none is.
std::int64_t legal_batch(const PlanRequest& request, Load load, const ShardingLimits& limits) {
  const PlanChoice given = resolve(request, load);
  const ParallelPlan& plan = given.parallel;
  const std::int64_t unit = plan.pipeline * plan.data * given.micro_batch;
  const std::int64_t least = std::max<std::int64_t>(0, load.batch_size - 2 * unit);
  for (; load.batch_size > least; --load.batch_size) {
    if (!broken_rule(resolve(request, load), load, limits)) return load.batch_size;
  }
  return 0;
}

}  // namespace

std::vector<Remedy> remedies_for(Planner& planner, const PlanRequest& request, const Load& load,
                                 const PlanResult& result, std::span<const FormatFit> formats) {
  std::vector<Remedy> remedies;
  add_devices(planner, request, load, request.choice.parallel.devices(), remedies);
  const auto widest = std::ranges::find_if(formats, &FormatFit::fits);
  if (widest != formats.end())
    remedies.emplace_back(OtherFormats{widest->weights, widest->kv_dtype});
  add_recomputation(planner, request, load, remedies);
  const std::int64_t context = result.largest_context.value_or(0);
  const Load shorter{load.batch_size, context};
  const bool is_legal = context > planner.tower_tokens() &&
                        !broken_rule(resolve(request, shorter), shorter, planner.limits(context));
  if (is_legal) remedies.emplace_back(ShorterContext{context});
  const std::int64_t batch = legal_batch(request, {result.largest_batch.value_or(0), load.seq_len},
                                         planner.limits(load.seq_len));
  if (batch > 0) remedies.emplace_back(SmallerBatch{batch});
  return remedies;
}

}  // namespace headroom
