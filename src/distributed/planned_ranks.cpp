#include "planned_ranks.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "headroom/plan.h"

namespace headroom::distributed {
namespace {

/// The plan of a pass. A decode step has one token per sequence, which no rank can share.
ParallelPlan plan_of_pass(ParallelPlan plan, Phase phase) {
  if (phase == Phase::decode) plan.sequence = SequenceParallel::off;
  return plan;
}

}  // namespace

void require_runs(const ParallelPlan& plan, const ModelSpec& spec, const Workload& workload) {
  if (plan.data > 1 || plan.context > 1 || plan.expert > 1 || plan.interleave > 1) {
    throw Error(ErrorCode::invalid_input,
                "only tensor, sequence and pipeline parallelism run on this machine", {},
                "leave out the other degrees; fit counts them");
  }
  PlanChoice choice;
  choice.parallel = plan;
  ShardingLimits limits =
      limits_of(build_graph(spec, graph_options(workload)), workload.seq_len);
  // Engines shard the tokens of a training step only; a prefill runs in the same way.
  if (plan.sequence == SequenceParallel::on && limits.one_stack) limits.training = true;
  if (const auto rule = broken_rule(plan, limits)) {
    throw IllegalPlan({*rule, choice, Load{}, limits});
  }
}

PlannedRank::PlannedRank(Processes& processes, const ParallelPlan& plan) {
  const std::int64_t ranks = processes.world().size();
  if (ranks != plan.devices()) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("the plan {} needs {} processes, and {} run", describe(plan),
                            plan.devices(), ranks),
                {}, fmt::format("start it with: mpirun -n {} headroom measure …", plan.devices()));
  }
  const std::int64_t rank = processes.world().rank();
  context_.tensor = {plan.tensor, rank % plan.tensor};
  context_.pipeline = {plan.pipeline, rank / plan.tensor};
  context_.sequence = plan.sequence == SequenceParallel::on ? measured::SequenceShards::on
                                                            : measured::SequenceShards::off;
  tensor_ = processes.split(RankGroup::tensor, context_.pipeline.rank);
  pipeline_ = processes.split(RankGroup::pipeline, context_.tensor.rank);
  context_.tensor_group = tensor_.get();
  context_.pipeline_group = pipeline_.get();
  context_.world = &processes.world();
  context_.traffic = [&processes] { return processes.traffic(); };
  context_.shard = [plan, stage = context_.pipeline.rank](const Graph& whole) {
    return shard_stage(whole, plan_of_pass(plan, whole.options.phase), stage);
  };
}

}  // namespace headroom::distributed
