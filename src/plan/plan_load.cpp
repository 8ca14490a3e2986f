// Plans with their load: legality, defaults, and the largest load that fits.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "broken_rules.h"

namespace headroom {
namespace {

/// Far beyond any machine's memory, and far from the range of 64 bits.
constexpr std::int64_t kMostSequences = std::int64_t{1} << 32U;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 34U;

bool interleaves_evenly(const PlanChoice& choice, const Load& load) noexcept {
  return choice.parallel.interleave == 1 ||
         micro_batches(choice, load) % choice.parallel.pipeline == 0;
}

std::optional<PlanRule> broken_schedule_rule(const PlanChoice& choice, const Load& load,
                                             const ShardingLimits& limits) noexcept {
  const ParallelPlan& plan = choice.parallel;
  if (choice.step.schedule == PipelineSchedule::one_forward_one_backward) return std::nullopt;
  const bool piped = plan.pipeline > 1 && plan.interleave == 1 && limits.training;
  if (!piped) return PlanRule::schedule_pipeline;
  if (choice.step.schedule == PipelineSchedule::zero_bubble) return std::nullopt;
  const bool both_ends = plan.pipeline % 2 == 0 && micro_batches(choice, load) >= 2 * plan.pipeline;
  return both_ends ? std::nullopt : std::optional(PlanRule::dual_pipe_stages);
}

bool overfills_replica(const PlanChoice& choice, const Load& load,
                       const ShardingLimits& limits) noexcept {
  const std::int64_t replicas = std::max<std::int64_t>(1, choice.parallel.data);
  return limits.training && choice.micro_batch > ceil_div(load.batch_size, replicas);
}

bool shards_evenly(const PlanChoice& choice) noexcept {
  const ParallelPlan& plan = choice.parallel;
  if (choice.step.zero_ranks == 0) return true;
  const bool dense = choice.step.zero_ranks > 0 && plan.replicas() % choice.step.zero_ranks == 0;
  if (!dense || plan.expert == 1) return dense;
  const std::int64_t copies = plan.expert_replicas() / plan.expert;
  return copies * choice.step.zero_ranks % plan.replicas() == 0;
}

std::optional<PlanRule> broken_offload_rule(const PlanChoice& choice,
                                            const ShardingLimits& limits) noexcept {
  if (choice.step.offload_layers == 0) return std::nullopt;
  const bool counts = choice.step.offload_layers > 0 && limits.training &&
                      choice.step.offload_layers < limits.layers.total();
  if (!counts) return PlanRule::offload_layers_count;
  if (choice.parallel.pipeline > 1) return PlanRule::offload_layers_pipeline;
  if (choice.recompute.kind != Recompute::none) return PlanRule::offload_layers_recompute;
  return std::nullopt;
}

std::optional<PlanRule> broken_loss_rule(const PlanChoice& choice, const Load& load,
                                         const ShardingLimits& limits) noexcept {
  if (choice.step.loss_chunks < 1) return PlanRule::loss_chunks_positive;
  if (choice.step.loss_chunks == 1) return std::nullopt;
  if (!limits.training || !limits.predicts_words) return PlanRule::loss_chunks_words;
  const Integer tokens = Integer{choice.micro_batch} * load.seq_len / choice.parallel.context;
  const bool fills = choice.step.loss_chunks <= tokens;
  return fills ? std::nullopt : std::optional(PlanRule::loss_chunks_tokens);
}

/// The first broken rule about the options of a step.
std::optional<PlanRule> broken_step_rule(const PlanChoice& choice, const Load& load,
                                         const ShardingLimits& limits) noexcept {
  const bool overlaps = choice.step.tensor_overlap == TensorOverlap::on;
  if (overlaps && choice.parallel.sequence == SequenceParallel::off) {
    return PlanRule::tensor_overlap_sequence;
  }
  if (const auto rule = broken_loss_rule(choice, load, limits)) return rule;
  return broken_offload_rule(choice, limits);
}

std::optional<PlanRule> broken_interleaving_rule(const PlanChoice& choice, const Load& load,
                                                 const ShardingLimits& /*limits*/) noexcept {
  if (interleaves_evenly(choice, load)) return std::nullopt;
  return PlanRule::interleave_micro_batches;
}

std::optional<PlanRule> broken_zero_rule(const PlanChoice& choice, const Load& /*load*/,
                                         const ShardingLimits& /*limits*/) noexcept {
  if (shards_evenly(choice)) return std::nullopt;
  return PlanRule::zero_ranks_divide;
}

using StepCheck = std::optional<PlanRule> (*)(const PlanChoice&, const Load&,
                                              const ShardingLimits&);
constexpr StepCheck kStepChecks[] = {broken_interleaving_rule, broken_schedule_rule,
                                     broken_zero_rule, broken_step_rule};

/// The plan with these degrees that leaves the options of a step the most room.
PlanChoice roomiest_plan(const FixedDegrees& fixed, const Load& load) {
  PlanChoice choice;
  ParallelPlan& plan = choice.parallel;
  plan.pipeline = fixed.pipeline.value_or(1);
  plan.context = std::max<std::int64_t>(1, fixed.context.value_or(1));
  plan.sequence =
      fixed.tensor == 1 ? SequenceParallel::off : fixed.sequence.value_or(SequenceParallel::on);
  const std::int64_t replicas = std::max<std::int64_t>(1, fixed.data.value_or(1));
  choice.micro_batch = fixed.micro_batch.value_or(ceil_div(load.batch_size, replicas));
  choice.recompute = fixed.recompute.value_or(Recomputation{});
  choice.step = fixed.step;
  return choice;
}

/// A plan divides sequences whose length is a multiple of this.
std::int64_t seq_len_divisor(const ParallelPlan& plan) {
  const std::int64_t context = plan.context > 1 ? 2 * plan.context : 1;
  const bool sequence = plan.sequence == SequenceParallel::on;
  return sequence ? std::lcm(context, plan.tensor * plan.context) : context;
}

std::string message_of(const PlanViolation& violation) {
  return fmt::format("illegal plan ({}): {}", describe(violation.choice.parallel),
                     requirement_of(violation.rule));
}

}  // namespace

std::int64_t micro_batches(const PlanChoice& choice, const Load& load) noexcept {
  return ceil_div(load.batch_size, choice.parallel.data * choice.micro_batch);
}

std::int64_t sequences_run(const PlanChoice& choice, const Load& load) noexcept {
  return micro_batches(choice, load) * choice.micro_batch * choice.parallel.data;
}

std::optional<PlanRule> broken_rule(const PlanChoice& choice, const Load& load,
                                    const ShardingLimits& limits) {
  if (load.batch_size < 1) return PlanRule::batch_size_positive;
  if (load.seq_len < 1) return PlanRule::seq_len_positive;
  if (choice.micro_batch < 1) return PlanRule::micro_batch_positive;
  if (overfills_replica(choice, load, limits)) return PlanRule::micro_batch_replica;
  if (choice.recompute.every < 1) return PlanRule::recompute_interval_positive;
  if (const auto rule = broken_rule(choice.parallel, limits)) return rule;
  for (const StepCheck check : kStepChecks) {
    if (const auto rule = check(choice, load, limits)) return rule;
  }
  return std::nullopt;
}

std::vector<PlanRule> detail::broken_rules(const PlanChoice& choice, const Load& load,
                                           const ShardingLimits& limits) {
  std::vector<PlanRule> rules = broken_rules(choice.parallel, limits);
  for (const StepCheck check : kStepChecks) {
    if (const auto rule = check(choice, load, limits)) rules.push_back(*rule);
  }
  return rules;
}

IllegalPlan::IllegalPlan(const PlanViolation& violation)
    : Error(ErrorCode::invalid_input, message_of(violation)), violation_(violation) {}

void require_legal(const PlanChoice& choice, const Load& load, const ShardingLimits& limits) {
  const auto rule = broken_rule(choice, load, limits);
  if (rule) throw IllegalPlan({*rule, choice, load, limits});
}

void require_legal(const FixedDegrees& fixed, const Load& load, const ShardingLimits& limits) {
  const PlanChoice choice = roomiest_plan(fixed, load);
  const auto rule = broken_step_rule(choice, load, limits);
  if (rule) throw IllegalPlan({*rule, choice, load, limits});
}

PlanChoice resolve(const PlanRequest& request, const Load& load) {
  PlanChoice choice = request.choice;
  const bool pipelined = choice.parallel.pipeline > 1;
  choice.micro_batch = request.micro_batch.value_or(
      pipelined ? 1 : ceil_div(load.batch_size, std::max<std::int64_t>(1, choice.parallel.data)));
  return choice;
}

std::int64_t largest_satisfying(const std::function<bool(std::int64_t)>& predicate,
                                std::int64_t limit) {
  std::int64_t holds = 0;
  std::int64_t fails = 1;
  while (fails <= limit && predicate(fails)) {
    holds = fails;
    fails *= 2;
  }
  fails = std::min(fails, limit + 1);
  while (fails - holds > 1) {
    const std::int64_t middle = holds + (fails - holds) / 2;
    (predicate(middle) ? holds : fails) = middle;
  }
  return holds;
}

namespace {

/// The largest batch up to that of `load` that the plan's schedule takes; 0 if it takes none.
std::int64_t largest_legal(Planner& planner, const PlanRequest& request, Load load) {
  const ShardingLimits limits = planner.limits(load.seq_len);
  // Schedules ask for multiples of the pipeline's stages, and at least twice as many.
  const PlanChoice choice = resolve(request, load);
  const std::int64_t step = choice.micro_batch * choice.parallel.data;
  for (std::int64_t i = 0; i <= 2 * choice.parallel.pipeline && load.batch_size > 0; ++i) {
    if (!broken_rule(resolve(request, load), load, limits)) return load.batch_size;
    load.batch_size = (load.batch_size - 1) / step * step;
  }
  return 0;
}

}  // namespace

std::optional<std::int64_t> largest_batch(Planner& planner, const PlanRequest& request, Load load) {
  const auto fits = [&](std::int64_t batch) {
    load.batch_size = batch;
    return planner.fits(planner.evaluate(resolve(request, load), load));
  };
  const std::int64_t largest = largest_satisfying(fits, kMostSequences);
  if (largest == kMostSequences) return std::nullopt;
  load.batch_size = largest;
  return largest_legal(planner, request, load);
}

std::optional<std::int64_t> learned_positions(const ModelSpec& spec) {
  const PositionSpec& position = spec.position;
  const bool is_table = position.kind == PositionKind::learned && !spec.embedding.image;
  if (!is_table) return std::nullopt;
  return position.max_position_embeddings - position.offset;
}

std::optional<std::int64_t> largest_context(Planner& planner, const PlanRequest& request,
                                            Load load) {
  if (planner.spec().embedding.image) return std::nullopt;  // the image sets the length
  const std::int64_t divisor = seq_len_divisor(request.choice.parallel);
  const PlanChoice choice = resolve(request, load);
  const auto fits = [&](std::int64_t multiple) {
    load.seq_len = multiple * divisor;
    return planner.fits(planner.evaluate(choice, load));
  };
  const std::int64_t most = learned_positions(planner.spec()).value_or(kMostTokens);
  const std::int64_t largest = largest_satisfying(fits, most / divisor) * divisor;
  return largest >= kMostTokens - divisor ? std::nullopt : std::optional(largest);
}

std::string_view name_of(PipelineSchedule schedule) noexcept {
  switch (schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return "1f1b";
    case PipelineSchedule::zero_bubble:
      return "zero-bubble";
    case PipelineSchedule::dual_pipe:
      break;
  }
  return "dual-pipe";
}

std::string name_of(const Recomputation& recompute) {
  const bool names_modules = recompute.modules != Recomputation{}.modules;
  if (recompute.kind == Recompute::selective && names_modules) return name_of(recompute.modules);
  const bool several = recompute.kind == Recompute::full && recompute.every > 1;
  if (several) return fmt::format("every={}", recompute.every);
  return std::string(name_of(recompute.kind));
}

}  // namespace headroom
