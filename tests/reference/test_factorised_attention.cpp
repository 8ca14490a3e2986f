// Step-3: multi-matrix factorisation attention (arXiv 2412.19255) beside experts, and its tower.
// Published figures: arXiv 2507.19427 and the model's card.
#include <doctest/doctest.h>

#include <string>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/parallel_plan.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kLayers = 61;

/// Step-3 with the keys that its class reads (vLLM, configs/step3_vl.py).
nlohmann::json step3_text() {
  std::string routed = "4";
  for (int layer = 5; layer < 60; ++layer) routed += "," + std::to_string(layer);
  return {{"model_type", "step3_text"},
          {"architectures", {"Step3TextForCausalLM"}},
          {"hidden_size", 7168},
          {"intermediate_size", 18432},
          {"num_attention_heads", 64},
          {"num_attention_groups", 1},
          {"num_hidden_layers", kLayers},
          {"max_seq_len", 65536},
          {"vocab_size", 128815},
          {"rms_norm_eps", 1e-5},
          {"moe_intermediate_size", 5120},
          {"moe_num_experts", 48},
          {"moe_top_k", 3},
          {"rope_theta", 500000},
          {"rope_scaling", nullptr},
          {"share_expert_dim", 5120},
          {"share_q_dim", 2048},
          {"head_dim", 256},
          {"max_position_embedding", 65536},
          {"norm_expert_weight", false},
          {"moe_layers_enum", routed}};
}

/// With the tower of EVA-02-CLIP-E (arXiv 2303.15389: width 1792, network 15360), less one layer.
nlohmann::json step3_vl() {
  return {{"model_type", "step3_vl"},
          {"architectures", {"Step3VLForConditionalGeneration"}},
          {"text_config", step3_text()},
          {"vision_config",
           {{"model_type", "step3_vision_encoder"},
            {"hidden_size", 1792},
            {"intermediate_size", 15360},
            {"output_hidden_size", 4096},
            {"num_hidden_layers", 63},
            {"num_attention_heads", 16},
            {"num_channels", 3},
            {"image_size", 728},
            {"patch_size", 14},
            {"hidden_act", "quick_gelu"},
            {"layer_norm_eps", 1e-5}}},
          {"understand_projector_stride", 2},
          {"image_token_id", 128001}};
}

/// FLOPs of the GEMMs of queries with keys and of weights with values.
Integer flops_of_keys_and_values(const Counted& counted) {
  Integer sum = 0;
  for (std::size_t i = 0; i < counted.analysis.components.size(); ++i) {
    const Part part = counted.analysis.components[i].component.part;
    const bool is_core = part == Part::attention_scores || part == Part::attention_context ||
                         part == Part::attention_core;
    if (is_core) sum += counted.figures.components[i].forward.matrix_flops;
  }
  return sum;
}

}  // namespace

TEST_CASE("Step-3 has 316 billion parameters, 38 of which a token uses, and 321 with its tower") {
  const ModelSpec spec = spec_of(step3_text());
  CHECK(spec.not_run.empty());
  CHECK(spec.unread_keys.empty());
  CHECK(spec.assumptions.empty());
  const Graph text = build_graph(spec, {});
  const ParameterCount count = count_parameters(text);
  const auto value = [](const Expr& expr, const Graph& graph) {
    return expr.evaluate(graph.sizes);
  };
  // Shapes of Step3TextAttention: q_proj, k_proj, v_proj, wq, o_proj. Norms are counted apart.
  const std::int64_t attention = 7168 * (2048 + 2 * 256) + 2048 * 64 * 256 + 64 * 256 * 7168;
  const std::int64_t expert = 3 * 7168 * 5120;
  const std::int64_t norms = kLayers * (2 * 7168 + 2048) + 7168;
  CHECK(value(count.attention, text) == Integer{kLayers} * attention);
  CHECK(value(count.norm, text) == norms);
  CHECK(value(count.routed_experts, text) == Integer{56} * 48 * expert);
  const Integer dense = Integer{5} * 3 * 7168 * 18432;
  const Integer routers = Integer{56} * 7168 * 48;
  const Integer total = Integer{kLayers} * attention + norms + dense + routers +
                        Integer{56} * 49 * expert + Integer{2} * 128815 * 7168;
  CHECK(value(count.total, text) == total);
  CHECK(total / kBillion == 316);
  CHECK(value(count.active, text) == total - Integer{56} * 45 * expert);
  CHECK(value(count.active, text) / kBillion == 38);
  const Graph of_class = build_graph(spec_of({{"model_type", "step3_text"}}), {});
  CHECK(value(count_parameters(of_class).total, of_class) == total);

  const ModelSpec whole = spec_of(step3_vl());
  CHECK(whole.unread_keys.empty());
  const Graph graph = build_graph(whole, {});
  const ParameterCount all = count_parameters(graph);
  CHECK(value(all.parts.text, graph) == total);
  // Step3VisionTransformer; two convolutions and a projector, with biases.
  const Integer layer = Integer{4} * 1792 * 1793 + 2 * 1792 * 15360 + 15360 + 1792 + 4 * 1792;
  CHECK(value(all.parts.vision, graph) ==
        63 * layer + 1792 * (3 * 14 * 14 + 1) + 1792 + 1792 * (52 * 52 + 1));
  CHECK(value(all.parts.projector, graph) == Integer{4096} * (1792 * 4 + 1) +
                                                 Integer{8192} * (4096 * 9 + 1) +
                                                 Integer{7168} * (8192 + 1));
  CHECK((value(all.total, graph) + kBillion / 2) / kBillion == 321);
}

// Its paper's table of five models at a context of 32,768 tokens with 8-bit keys and values:
// 1.02·10⁹ bytes, 1.31·10¹¹ FLOPs, 128 FLOP/byte.
TEST_CASE("Step-3 has the KV-cache and arithmetic intensity of attention that its paper states") {
  Workload workload;
  workload.phase = Phase::decode;
  workload.seq_len = 1;
  workload.past_len = 32767;
  workload.kv_dtype = DType::int8;
  for (const AttentionImplementation attention :
       {AttentionImplementation::eager, AttentionImplementation::fused}) {
    workload.attention = attention;
    const Counted counted = count(spec_of(step3_text()), workload);
    CHECK(counted.figures.kv_cache_bytes == 1'023'410'176);
    CHECK(flops_of_keys_and_values(counted) == 128 * counted.figures.kv_cache_bytes);
  }
}

TEST_CASE("tensor-parallel ranks divide the heads of Step-3, not the low rank before them") {
  // ReplicatedLinear of q_proj, k_proj and v_proj, ColumnParallelLinear of wq (vLLM,
  // step3_text.py).
  ParallelPlan plan;
  plan.tensor = 8;
  const Graph rank = shard(build_graph(spec_of(step3_text()), {}), plan);
  const std::int64_t whole = 7168 * (2048 + 2 * 256);
  const std::int64_t divided = (2048 * 64 * 256 + 64 * 256 * 7168) / 8;
  CHECK(count_parameters(rank).attention.evaluate(rank.sizes) ==
        Integer{kLayers} * (whole + divided));
}

TEST_CASE("a rank of queries saves three values per token and layer for the backward pass") {
  // Step3vRMSNorm saves its input and the normalised input, wq its own input: 480 bytes more for 4
  // more features in one layer in torch 2.15 (make_step3_counts.py), float32, eager.
  auto config = read_json(data_folder() / "families/step3_text/config.json");
  Workload workload;
  workload.phase = Phase::train;
  workload.batch_size = 2;
  workload.seq_len = 5;
  workload.dtype = DType::float32;
  const auto saved = [&] {
    return count(spec_of(config), workload).figures.saved_activation_bytes;
  };
  const Integer less = saved();
  config["share_q_dim"] = config.at("share_q_dim").get<int>() + 4;
  const std::int64_t layers = config.at("num_hidden_layers").get<std::int64_t>();
  CHECK(saved() - less == Integer{3} * 2 * 5 * 4 * 4 * layers);
}

TEST_CASE("Step-3 is refused with more key-value heads than its class has, and with wrong layers") {
  auto config = step3_text();
  config["num_attention_groups"] = 2;
  CHECK_THROWS_AS((void)spec_of(config), Error);
  config = step3_text();
  config["moe_layers_enum"] = "4,five";
  CHECK_THROWS_AS((void)spec_of(config), Error);
}
