// Ranks of gated delta layers, against the config of a published model and vLLM's shapes.
#include "gpt_models.h"

namespace headroom::test {

// Qwen3.5 27B's config: d 5120, 24 query heads, 48 gated delta layers of 16 key heads and 48 value
// heads of 128, a convolution of 4 taps. vLLM's QwenGatedDeltaNetAttention gives rank r of 8 the
// key heads 2·r and 2·r + 1 and their 6 value heads; the norm of one head's 128 values is on all
// ranks.
TEST_CASE("a rank's gated delta layers have its key heads and the value heads that share them") {
  const ModelSpec spec = load_model("qwen3.5-27b").spec;
  const Graph whole = training_graph(spec, AttentionImplementation::fused);
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    CAPTURE(ranks);
    const ParallelPlan plan = tensor_plan(ranks, SequenceParallel::off);
    CHECK_FALSE(broken_rule(plan, limits_of(whole, 128)));
    const Integer keys = 16 / ranks * 128;
    const Integer value_heads = 48 / ranks;
    const Integer values = value_heads * 128;
    const Integer qkv = 2 * keys + values;
    Integer layer = 5120 * (qkv + values + 2 * value_heads);  // query, key, value; gate; α and β
    layer += 4 * qkv + 2 * value_heads + 128;                 // taps; dt_bias and a_log; norm
    layer += values * 5120;
    const Graph rank = shard(whole, plan);
    Integer counted = 0;
    for (const Weight& weight : rank.weights) {
      const bool is_delta = weight.path.find(".delta.") != std::string::npos;
      if (is_delta) counted += (weight.repeat * weight.elements()).evaluate(rank.sizes);
    }
    CHECK(counted == 48 * layer);
  }
}

TEST_CASE("ranks of gated delta layers have the parameters and FLOPs of the model together") {
  struct Case {
    const char* model;
    std::int64_t ranks;  // at most as many as key-value heads, which more ranks would repeat
  };
  const Workload workload = training(1, 128, AttentionImplementation::fused);
  for (const Case& one :
       {Case{"qwen3.5-27b", 4}, Case{"qwen3.5-122b-a10b", 2}, Case{"qwen3.5-397b-a17b", 2},
        Case{"kimi-linear-48b-a3b", 4}, Case{"olmo-hybrid-7b", 2}}) {
    CAPTURE(std::string(one.model));
    const Graph whole = training_graph(load_model(one.model).spec, AttentionImplementation::fused);
    const ParallelPlan plan = tensor_plan(one.ranks, SequenceParallel::on);
    CHECK_FALSE(broken_rule(plan, limits_of(whole, 128)));
    const Graph rank = shard(whole, plan);
    CHECK(one.ranks * parameters_on(rank) ==
          parameters_on(whole) + (one.ranks - 1) * replicated_parameters(rank));
    CHECK(one.ranks * forward_flops(rank, workload, plan) == forward_flops(whole, workload, {}));
  }
}

// MambaStateShapeCalculator.gated_delta_net_state_shape of vLLM: (2·128·16 + 128·48)/tp channels of
// the convolution, and 48/tp states of 128 × 128.
TEST_CASE("a rank holds the states of its gated delta heads, and the inputs of its convolutions") {
  const ModelSpec spec = load_model("qwen3.5-27b").spec;
  const Graph whole = build_graph(spec, {Phase::decode, AttentionImplementation::fused});
  Workload workload;
  workload.phase = Phase::decode;
  workload.batch_size = 3;
  workload.past_len = 99;
  for (const std::int64_t ranks : {1, 2, 8}) {
    CAPTURE(ranks);
    const ParallelPlan plan = tensor_plan(ranks, SequenceParallel::off);
    const Graph rank = shard(whole, plan);
    const Bindings values = values_on(rank, workload, plan);
    std::size_t states = 0;
    for (const CacheTensor& cache : cache_tensors(rank)) {
      const Tensor& tensor = rank.tensors[cache.tensor];
      const Integer elements = tensor.elements().evaluate(values);
      if (tensor.type == ElementType::recurrent_state) {
        CHECK(elements == Integer{3} * (48 / ranks) * 128 * 128);
        ++states;
      } else if (tensor.type == ElementType::convolution_state) {
        CHECK(elements == Integer{3} * 4 * ((2 * 128 * 16 + 128 * 48) / ranks));
        ++states;
      }
    }
    CHECK(states == 6);  // two for each of three delta layers between full ones
  }
}

// 32 query heads and 2 key-value heads, but 16 key heads of gated delta layers. vLLM's divide()
// refuses 32 ranks, too.
TEST_CASE("more ranks than key heads of gated delta layers are refused") {
  const Graph whole =
      training_graph(load_model("qwen3.5-122b-a10b").spec, AttentionImplementation::fused);
  const ShardingLimits limits = limits_of(whole, 128);
  CHECK(limits.delta_key_heads == 16);
  CHECK_FALSE(broken_rule(tensor_plan(16, SequenceParallel::off), limits));
  CHECK(broken_rule(tensor_plan(32, SequenceParallel::off), limits) ==
        PlanRule::tensor_delta_key_heads);
  CHECK(limits_of(training_graph(gpt(768, 12, 12)), 128).delta_key_heads == 0);
}

}  // namespace headroom::test
