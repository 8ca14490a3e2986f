#include "planned_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "headroom/error.h"
#include "headroom/plan.h"
#include "with_noun.h"

namespace headroom::distributed {
namespace {

/// The plan of a pass. A decode step has one token per sequence, which no rank can share.
ParallelPlan plan_of_pass(ParallelPlan plan, Phase phase) {
  if (phase == Phase::decode) plan.sequence = SequenceParallel::off;
  return plan;
}

/// Tensors that a stage sends on, in their order.
std::vector<Expr> sent_by(const Graph& stage) {
  std::vector<Expr> sent;
  for (const Block& block : stage.blocks) {
    for (const Node& node : block.nodes) {
      const auto* const op = std::get_if<Collective>(&node.op);
      const bool sends = op != nullptr && op->forward == CollectiveKind::send;
      if (sends) sent.push_back(stage.tensors[node.output].elements());
    }
  }
  return sent;
}

/// Returns whether the stage reads only its own tensors, caches and the graph's inputs.
bool reads_own_tensors(const Graph& stage) {
  std::set<TensorId> present(stage.inputs.begin(), stage.inputs.end());
  for (const Block& block : stage.blocks) {
    for (const Node& node : block.nodes) {
      const bool known = std::ranges::all_of(node.inputs, [&](TensorId input) {
        return present.contains(input) || block.carries_in(input) ||
               stage.tensors[input].type != ElementType::activation;
      });
      if (!known) return false;
      present.insert(node.output);
    }
  }
  return true;
}

/// Throws if a stage needs more than its predecessor sends, such as embeddings that each layer
/// reads.
void require_stages_fit(const Graph& whole, const ParallelPlan& plan) {
  std::vector<Expr> sent;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const Graph graph = shard_stage(whole, plan, stage);
    std::vector<Expr> received;
    for (const TensorId input : graph.inputs) {
      received.push_back(graph.tensors[input].elements());
    }
    const bool fits = reads_own_tensors(graph) && (stage == 0 || received == sent);
    if (!fits) {
      throw Error(ErrorCode::invalid_input,
                  "a stage of the pipeline reads more than the hidden states of the one before", {},
                  "leave out pipeline parallelism");
    }
    sent = sent_by(graph);
  }
}

/// Throws if the batch cannot be divided over replicas.
void require_replicas_run(const ParallelPlan& plan, const Workload& workload) {
  if (plan.data == 1) return;
  if (workload.batch_size % plan.data != 0) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} replicas do not share a batch of {} evenly", plan.data,
                            detail::with_noun(workload.batch_size, "sequence")),
                {}, fmt::format("choose a batch that is a multiple of {}", plan.data));
  }
  if (workload.images.totals.images > 0 || workload.audio.totals.segments > 0) {
    throw Error(ErrorCode::invalid_input, "no replicas share images or sound; fit counts them", {},
                "leave out data parallelism");
  }
}

/// Throws for experts that replicas do not share evenly, and for divided ones whose tokens
/// tensor-parallel ranks would have to gather.
void require_experts_run(const ParallelPlan& plan) {
  if (plan.expert == 1) return;
  if (plan.expert_replicas() % plan.expert != 0) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("expert parallelism {} does not divide {}", plan.expert,
                            detail::with_noun(plan.expert_replicas(), "replica")),
                {}, fmt::format("run {} replicas, or a multiple", plan.expert));
  }
  const bool divided = plan.tensor > 1 && plan.expert_tensor == ExpertTensor::divided;
  if (!divided || plan.sequence == SequenceParallel::off) return;
  throw Error(ErrorCode::invalid_input,
              "experts that tensor-parallel ranks divide do not run on the tokens that sequence "
              "parallelism shards; fit counts it",
              {}, "leave out sequence parallelism, or leave the experts whole");
}

/// Place of a rank among those that hold the experts, and the number of its group. Neighbours
/// share them: replicas of one tensor rank, or all ranks of a stage if experts are whole.
struct ExpertPlace {
  measured::GroupPosition position;
  std::int64_t group = 0;
};

ExpertPlace expert_place(const ParallelPlan& plan, std::int64_t rank) {
  const std::int64_t in_stage = rank % (plan.tensor * plan.data);
  const std::int64_t stage = rank / (plan.tensor * plan.data);
  const bool whole = plan.expert_tensor == ExpertTensor::whole;
  const std::int64_t sets = whole ? 1 : plan.tensor;  // of experts in a stage
  const std::int64_t holder = in_stage / sets;
  const std::int64_t group = holder / plan.expert * sets + in_stage % sets;
  const std::int64_t groups = plan.tensor * plan.data / plan.expert;  // of a stage
  return {{plan.expert, holder % plan.expert}, stage * groups + group};
}

}  // namespace

void require_runs(const ParallelPlan& plan, const ModelSpec& spec, const Workload& workload) {
  if (plan.context > 1 || plan.interleave > 1) {
    throw Error(ErrorCode::invalid_input,
                "neither context parallelism nor an interleaved pipeline runs on this machine", {},
                "leave it out; fit counts it");
  }
  PlanChoice choice;
  choice.parallel = plan;
  ShardingLimits limits = limits_of(build_graph(spec, graph_options(workload)), workload.seq_len);
  if (limits.experts > 0) require_experts_run(plan);
  // Engines shard the tokens of a training step only; a prefill runs in the same way.
  if (plan.sequence == SequenceParallel::on && limits.one_stack) limits.training = true;
  if (const auto rule = broken_rule(plan, limits)) {
    throw IllegalPlan({*rule, choice, Load{}, limits});
  }
  if (plan.pipeline > 1 && spec.head.similarity) {
    throw Error(ErrorCode::invalid_input,
                "no pipeline runs two encoders whose outputs are compared; fit counts it", {},
                "leave out pipeline parallelism");
  }
  if (plan.tensor > 1 && spec.main_stack().self_attention.gates_position_bias) {
    throw Error(ErrorCode::invalid_input,
                "tensor-parallel ranks do not run gated relative positions; fit counts them", {},
                "leave out tensor parallelism");
  }
  require_replicas_run(plan, workload);
  if (plan.pipeline > 1) require_stages_fit(build_graph(spec, graph_options(workload)), plan);
}

void require_micro_batches_run(std::int64_t micro_batch, const ParallelPlan& plan,
                               const Workload& workload) {
  if (plan.pipeline == 1) {
    throw Error(ErrorCode::invalid_input,
                "micro-batches flow through a pipeline, and the plan has one stage", {},
                "run several stages, or leave out the micro-batch");
  }
  if (micro_batch < 1) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("a micro-batch of {} has no sequences", micro_batch), {},
                "choose at least 1");
  }
  const std::int64_t sequences = workload.batch_size / plan.data;
  if (sequences % micro_batch != 0) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("micro-batches of {} do not divide the {} of a pipeline", micro_batch,
                            detail::with_noun(sequences, "sequence")),
                {},
                fmt::format("choose a batch that is a multiple of {}", micro_batch * plan.data));
  }
  if (workload.images.totals.images > 0 || workload.audio.totals.segments > 0) {
    throw Error(ErrorCode::invalid_input,
                "images and sound belong to no one micro-batch of a run; fit counts them", {},
                "leave out the micro-batch");
  }
}

PlannedRank::PlannedRank(Processes& processes, const ParallelPlan& plan) {
  const std::int64_t ranks = processes.world().size();
  if (ranks != plan.devices()) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("the plan {} needs {} processes, not {}", describe(plan),
                            plan.devices(), ranks),
                {}, fmt::format("start it with: mpirun -n {} headroom …", plan.devices()));
  }
  const std::int64_t rank = processes.world().rank();
  context_.tensor = {plan.tensor, rank % plan.tensor};
  const std::int64_t in_stage = rank % (plan.tensor * plan.data);
  context_.data = {plan.data, in_stage / plan.tensor};
  context_.pipeline = {plan.pipeline, rank / (plan.tensor * plan.data)};
  context_.sequence = plan.sequence == SequenceParallel::on ? measured::SequenceShards::on
                                                            : measured::SequenceShards::off;
  tensor_ = processes.split(RankGroup::tensor, rank / plan.tensor);
  pipeline_ = processes.split(RankGroup::pipeline, in_stage);
  replica_ = processes.subset(context_.data.rank);
  const ExpertPlace place = expert_place(plan, rank);
  context_.expert = place.position;
  experts_ = processes.split(RankGroup::expert, place.group);
  context_.tensor_group = tensor_.get();
  context_.pipeline_group = pipeline_.get();
  context_.expert_group = experts_.get();
  context_.replica = replica_.get();
  context_.world = &processes.world();
  context_.traffic = [&processes] { return processes.traffic(); };
  context_.shard = [plan, stage = context_.pipeline.rank](const Graph& whole) {
    return shard_stage(whole, plan_of_pass(plan, whole.options.phase), stage);
  };
}

}  // namespace headroom::distributed
