// Models with several kinds of layers: routed experts, latent attention, alternating layers.
#include "gpt_models.h"

namespace headroom::test {
namespace {

ModelSpec published(const std::string& name) {
  return spec_of(read_json(data_folder() / "golden/configs" / (name + ".config.json")), name);
}

/// Parameters of the weights that satisfy `predicate`.
template <class Predicate>
Integer parameters_of(const Graph& graph, Predicate predicate) {
  Integer count = 0;
  for (const Weight& weight : graph.weights) {
    if (weight.kind == WeightKind::buffer || !predicate(weight)) continue;
    count += (weight.repeat * weight.elements()).evaluate(graph.sizes);
  }
  return count;
}

bool is_expert(const Weight& weight) {
  return weight.component.part == Part::mlp_experts_up ||
         weight.component.part == Part::mlp_experts_down;
}

}  // namespace

TEST_CASE("expert-parallel ranks split the experts and replicate all other weights") {
  for (const char* const name : {"mixtral-8x7b", "deepseek-v2-lite"}) {
    CAPTURE(name);
    const Graph whole = training_graph(published(name));
    const Integer experts = parameters_of(whole, is_expert);
    CHECK(experts > 0);
    for (const std::int64_t degree : {2, 4, 8}) {
      ParallelPlan plan;
      plan.data = degree;
      plan.expert = degree;
      const Graph rank = shard(whole, plan);
      CHECK(degree * parameters_of(rank, is_expert) == experts);
      CHECK(parameters_on(rank) == parameters_on(whole) - experts + experts / degree);
      CHECK(forward_flops(rank, training(1, 128), plan) ==
            forward_flops(whole, training(1, 128), {}));
    }
  }
}

// GShard, arXiv 2006.16668, section 3.1: every token goes to each of its experts and comes back.
TEST_CASE("tokens travel to their experts and back in both passes") {
  ParallelPlan plan;
  plan.data = 8;
  plan.expert = 8;
  const Graph rank = shard(training_graph(published("mixtral-8x7b")), plan);
  const Expr tokens = Expr(Symbol::batch_size) * Symbol::seq_len * Symbol::num_experts_per_tok *
                      Symbol::hidden_size * Symbol::activation_bytes;
  int calls = 0;
  for (const CollectiveCall& call : collectives_of(rank)) {
    CHECK(call.kind == CollectiveKind::all_to_all);
    CHECK(call.group == RankGroup::expert);
    CHECK(call.bytes == tokens);
    ++calls;
  }
  CHECK(calls == 4);
}

TEST_CASE("tensor-parallel ranks of experts and latent attention split the model's FLOPs") {
  const Workload workload = training(2, 128);
  for (const char* const name : {"mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b"}) {
    CAPTURE(name);
    const Graph whole = training_graph(published(name));
    for (const auto sequence : {SequenceParallel::off, SequenceParallel::on}) {
      ParallelPlan plan;
      plan.tensor = 4;
      plan.sequence = sequence;
      const Graph rank = shard(whole, plan);
      const Integer divided = parameters_of(rank, is_divided);
      const Integer replicated =
          parameters_of(rank, [](const Weight& w) { return !is_divided(w); });
      CHECK(4 * divided + replicated == parameters_on(whole));
      // Without sequence parallelism all ranks repeat the router and the projections into latent
      // spaces.
      const Integer all_ranks = 4 * forward_flops(rank, workload, plan);
      const Integer model = forward_flops(whole, workload, {});
      if (sequence == SequenceParallel::on) {
        CHECK(all_ranks == model);
      } else {
        CHECK(all_ranks >= model);
        CHECK(static_cast<double>(all_ranks) < 1.1 * static_cast<double>(model));
      }
    }
  }
}

TEST_CASE("a tensor-parallel layer reduces its experts' outputs once") {
  ParallelPlan plan;
  plan.tensor = 2;
  const Graph rank = shard(build_graph(published("mixtral-8x7b"), {Phase::prefill, {}, {}}), plan);
  const Expr hidden =
      Expr(Symbol::batch_size) * Symbol::seq_len * Symbol::hidden_size * Symbol::activation_bytes;
  int in_layers = 0;
  for (const CollectiveCall& call : collectives_of(rank)) {
    if (call.repeat.constant()) continue;
    CHECK(call.kind == CollectiveKind::all_reduce);
    CHECK(call.bytes == hidden);
    ++in_layers;
  }
  CHECK(in_layers == 2);
}

// Megatron-LM, MoEAlltoAllTokenDispatcher: each rank of a tensor group sends its shard of the
// tokens, once per expert, to the experts' ranks, where the group gathers them; the outputs return
// after a reduce-scatter. DeepSpeed-TED (arXiv 2303.06318, section 5) drops the same copies.
TEST_CASE("with sequence parallelism a rank sends only its shard of tokens to the experts") {
  ParallelPlan plan;
  plan.tensor = 4;
  plan.sequence = SequenceParallel::on;
  plan.data = 8;
  plan.expert = 8;
  const Graph rank = shard(training_graph(published("mixtral-8x7b")), plan);
  const Expr shard_bytes = Expr(Symbol::batch_size) * Symbol::sequence_shard_len *
                           Symbol::num_experts_per_tok * Symbol::hidden_size *
                           Symbol::activation_bytes;
  std::vector<CollectiveKind> forward;
  for (const CollectiveCall& call : collectives_of(rank)) {
    const bool is_expert_call = call.path.find("mlp.experts") != std::string::npos;
    if (!is_expert_call || call.bytes != shard_bytes || call.backward) continue;
    forward.push_back(call.kind);
  }
  CHECK(forward ==
        std::vector<CollectiveKind>{CollectiveKind::all_to_all, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all});
  // Each all-to-all sends b·s·h·top_k·(EP − 1)/EP/TP elements of 2 bytes.
  const Workload workload = training(2, 512);
  const auto bytes = static_cast<double>(shard_bytes.evaluate(values_on(rank, workload, plan)));
  CHECK(wire_bytes(CollectiveKind::all_to_all, bytes, 8) ==
        doctest::Approx(2.0 * 512 * 4096 * 2 * 2 * 7 / 8 / 4));
}

TEST_CASE("experts with tensor and sequence parallelism repeat no FLOPs") {
  const Graph whole = training_graph(published("mixtral-8x7b"));
  const Workload workload = training(2, 128);
  ParallelPlan plan;
  plan.tensor = 4;
  plan.sequence = SequenceParallel::on;
  plan.data = 8;
  plan.expert = 8;
  // Each of 8 replicas processes its own tokens.
  CHECK(4 * forward_flops(shard(whole, plan), workload, plan) ==
        forward_flops(whole, workload, {}));
}

TEST_CASE("stages with several kinds of layers split the model's parameters") {
  const Graph whole = training_graph(published("deepseek-v2-lite"));
  ParallelPlan plan;
  plan.pipeline = 3;  // 27 layers; the first is dense
  const Integer first = parameters_on(shard(whole, plan, Stage::first));
  const Integer middle = parameters_on(shard(whole, plan, Stage::middle));
  const Integer last = parameters_on(shard(whole, plan, Stage::last));
  CHECK(first + middle + last == parameters_on(whole));
}

TEST_CASE("the planner's states of a stage with several kinds equal its sharded graph's") {
  const ModelSpec spec = published("deepseek-v2-lite");
  const Graph whole = training_graph(spec);
  Planner planner = h100_trainer(spec);
  PlanChoice choice;
  choice.parallel.pipeline = 3;
  choice.parallel.data = 4;
  choice.parallel.expert = 4;
  const PlanMemory memory = planner.evaluate(choice, {32, 512}).memory;
  const Graph stage = shard(whole, choice.parallel, memory.stage);
  const Integer states = memory.weights + memory.gradients + memory.optimizer;
  CHECK(states + memory.embedding_states == 18 * parameters_on(stage));
}

TEST_CASE("more expert-parallel ranks need less memory each") {
  Planner planner = h100_trainer(published("mixtral-8x7b"));
  Integer before = 0;
  for (const std::int64_t degree : {1, 2, 4, 8}) {
    PlanChoice choice;
    choice.parallel.data = 8;
    choice.parallel.expert = degree;
    choice.zero = Zero::none;
    const Integer now = planner.evaluate(choice, {8, 512}).memory.total();
    if (before > 0) CHECK(now < before);
    before = now;
  }
}

// Megatron-LM, --expert-tensor-parallel-size 1: a rank holds whole experts and runs them on its
// shard of the sequence.
TEST_CASE("whole experts are spread across tensor-parallel ranks") {
  for (const char* const name : {"mixtral-8x7b", "deepseek-v2-lite"}) {
    CAPTURE(std::string(name));
    const Graph whole = training_graph(published(name), AttentionImplementation::fused);
    ParallelPlan plan;
    plan.tensor = 2;
    plan.sequence = SequenceParallel::on;
    plan.data = 2;
    plan.expert = 4;
    const ShardingLimits limits = limits_of(whole, 128);
    CHECK(broken_rule(plan, limits) == PlanRule::expert_replicas);
    plan.expert_tensor = ExpertTensor::whole;
    REQUIRE_FALSE(broken_rule(plan, limits));
    const Graph rank = shard(whole, plan);
    CHECK(4 * parameters_of(rank, is_expert) == parameters_of(whole, is_expert));
    const Workload workload = training(1, 128, AttentionImplementation::fused);
    CHECK(2 * forward_flops(rank, workload, plan) == forward_flops(whole, workload, {}));
    plan.sequence = SequenceParallel::off;
    CHECK(broken_rule(plan, limits) == PlanRule::expert_whole_sequence);
  }
}

// Two exchanges in each of Mixtral's 32 layers.
TEST_CASE("a decode step exchanges tokens in the forward pass only") {
  PlanQuery query;
  Planner planner(published("mixtral-8x7b"), query,
                  device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.parallel.expert = 8;
  for (const Communication& row : planner.communication(choice, {8, 1024})) {
    if (row.group == RankGroup::expert) CHECK(row.count == 64);
  }
}

// DeepSeek-V3: attention and network of 61 layers, and the word embeddings (vLLM's deepseek_v2.py
// adds the shared expert's output to the routed experts' before it reduces them).
TEST_CASE("serving reduces the sums of routed and shared experts at once") {
  PlanQuery query;
  Planner planner(published("deepseek-v3"), query,
                  device_rates(find_machine("h200-141gb"), query.purpose, query.dtype));
  PlanChoice choice;
  choice.parallel.tensor = 8;
  const auto count_of = [&](CollectiveKind kind) {
    double count = 0;
    for (const Communication& row : planner.communication(choice, {1, 1024})) {
      if (row.group == RankGroup::tensor && row.kind == kind) count += row.count;
    }
    return count;
  };
  CHECK(count_of(CollectiveKind::all_reduce) == 2 * 61 + 1);
}

TEST_CASE("ZeRO shards the states of experts over fewer ranks") {
  Planner planner = h100_trainer(published("mixtral-8x7b"));
  const Graph whole = training_graph(published("mixtral-8x7b"));
  const Integer experts = parameters_of(whole, is_expert);
  const Integer others = parameters_on(whole) - experts;
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.parallel.expert = 4;
  choice.zero = Zero::optimizer;
  const PlanMemory memory = planner.evaluate(choice, {8, 512}).memory;
  CHECK(memory.weights == 2 * (others + experts / 4));
  // Two ranks store the same experts, eight all other weights.
  CHECK(memory.optimizer == 12 * others / 8 + 12 * (experts / 4) / 2);
}

TEST_CASE("the expert degree must divide the experts and the replicas") {
  const ShardingLimits limits = limits_of(training_graph(published("mixtral-8x7b")), 128);
  ParallelPlan plan;
  plan.data = 6;
  plan.expert = 3;
  CHECK(broken_rule(plan, limits) == PlanRule::expert_count);
  plan.expert = 4;
  CHECK(broken_rule(plan, limits) == PlanRule::expert_replicas);
  plan.data = 8;
  CHECK_FALSE(broken_rule(plan, limits));
}

}  // namespace headroom::test
