// Hybrids of linear or windowed attention, and families with older keys: parameters, caches and
// parts of published tables and of reference classes.
#include <doctest/doctest.h>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

struct Parameters {
  explicit Parameters(const nlohmann::json& config) : graph(build_graph(spec_of(config), {})) {
    const ParameterCount count = count_parameters(graph);
    total = count.total.evaluate(graph.sizes);
    active = count.active.evaluate(graph.sizes);
    text = count.parts.text.evaluate(graph.sizes);
    vision = count.parts.vision.evaluate(graph.sizes);
    audio = count.parts.audio.evaluate(graph.sizes);
    projector = count.parts.projector.evaluate(graph.sizes);
  }

  Graph graph;
  Integer total;
  Integer active;
  Integer text;
  Integer vision;
  Integer audio;
  Integer projector;
};

Integer parameters_of(const nlohmann::json& config) { return Parameters(config).total; }

nlohmann::json wild(const std::string& name) {
  return read_json(data_folder() / "wild" / (name + ".config.json"));
}

Integer cache_bytes(const ModelSpec& spec, std::int64_t tokens) {
  Workload workload;
  workload.seq_len = tokens;
  workload.kv_dtype = DType::bfloat16;
  return count(spec, workload).figures.kv_cache_bytes;
}

nlohmann::json ling_3() {
  return {{"model_type", "bailing_hybrid"},
          {"architectures", {"BailingMoeV3ForCausalLM"}},
          {"first_k_dense_replace", 1},
          {"gated_attention_proj_granularity_type", "head_wise"},
          {"group_norm_size", 1},
          {"head_dim", 128},
          {"hidden_size", 1536},
          {"intermediate_size", 4608},
          {"kda_lower_bound", -5},
          {"kda_safe_gate", true},
          {"kv_lora_rank", 512},
          {"layer_group_size", 4},
          {"linear_silu", true},
          {"max_position_embeddings", 131072},
          {"max_window_layers", 20},
          {"moe_intermediate_size", 512},
          {"moe_router_enable_expert_bias", true},
          {"moe_shared_expert_intermediate_size", 512},
          {"mtp_use_kda", false},
          {"n_group", 8},
          {"no_kda_lora", true},
          {"norm_topk_prob", true},
          {"num_attention_heads", 16},
          {"num_experts", 128},
          {"num_experts_per_tok", 8},
          {"num_hidden_layers", 24},
          {"num_key_value_heads", 16},
          {"num_kv_heads_for_linear_attn", 0},
          {"num_shared_experts", 1},
          {"partial_rotary_factor", 0.5},
          {"q_lora_rank", 256},
          {"qk_head_dim", 192},
          {"qk_nope_head_dim", 128},
          {"qk_rope_head_dim", 64},
          {"rms_norm_eps", 1e-06},
          {"rope_interleave", true},
          {"rope_theta", 6000000},
          {"rotary_dim", 64},
          {"routed_scaling_factor", 2.5},
          {"scoring_func", "sigmoid"},
          {"short_conv_kernel_size", 4},
          {"topk_group", 4},
          {"topk_method", "noaux_tc"},
          {"use_kda_lora", false},
          {"use_qk_norm", true},
          {"v_head_dim", 128},
          {"vocab_size", 157184}};
}

}  // namespace

TEST_CASE("MiMo-V2.5 has the values of its files, but for those of drafts, scales and biases") {
  // Shapes of the other tensors: three layers for drafts, a scale per 128 x 128 values in float8
  // (each key-value head's rows of Q, K and V by themselves), and a bias of every router.
  constexpr std::int64_t kWidth = 4096;
  constexpr std::int64_t kDrafts =
      std::int64_t{3} *
      (kWidth * 8192 + 5 * kWidth + 3 * kWidth * 16384 + 64 + kWidth * 8192 + 14848 * kWidth);
  constexpr std::int64_t kScales = 9 * 108 * 32 + 39 * 116 * 32 + 3 * 128 * 32 +
                                   std::int64_t{47} * 256 * 3 * 32 * 16 +
                                   3 * (3 * 128 * 32 + 116 * 32);
  const Parameters omni(wild("mimo-v2.5"));
  CHECK(omni.total + kDrafts + kScales + 47 * 256 == 310'775'040'000);
  CHECK(omni.vision == 681'407'232);
  CHECK(omni.audio == 126'909'440);
  CHECK(omni.projector == 181'404'928);
  CHECK(omni.text == parameters_of(wild("mimo-v2-flash")));
}

TEST_CASE("MiMo-V2.5-Pro has the values of its files, but for those of drafts, scales and biases") {
  constexpr std::int64_t kWidth = 6144;
  constexpr std::int64_t kDrafts =
      std::int64_t{3} *
      (kWidth * 12288 + 5 * kWidth + 3 * kWidth * 16384 + 128 + kWidth * 16384 + 27136 * kWidth);
  constexpr std::int64_t kScales = 70 * 216 * 48 + 3 * 128 * 48 +
                                   std::int64_t{69} * 384 * 3 * 48 * 16 +
                                   3 * (3 * 48 * 128 + 216 * 48);
  const Parameters pro(wild("mimo-v2.5-pro"));
  CHECK(pro.total + kDrafts + kScales + 69 * 384 == 1'023'244'718'976);
  CHECK(pro.active / 1'000'000'000 == 41);  // "42 B", rounded (its page)
  // Ten layers keep all tokens, the others a window of 128: 8 heads of 192 + 128 each.
  const ModelSpec spec = spec_of(wild("mimo-v2.5-pro"));
  CHECK(cache_bytes(spec, 4096) == Integer{2 * 8 * 320} * (10 * 4096 + 60 * 128));
}

TEST_CASE("MiMo-V2 without a pattern of its layers, or with another layout, is refused") {
  nlohmann::json config = wild("mimo-v2.5-pro");
  config["attention_projection_layout"] = "by_rank";
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("by_rank") != std::string::npos);
  config["attention_projection_layout"] = "split";
  CHECK_NOTHROW((void)spec_of(config));
  for (const char* const key : {"hybrid_layer_pattern", "moe_layer_freq"}) {
    nlohmann::json without = config;
    without.erase(key);
    CHECK(refusal_of([&] { (void)spec_of(without); }).find(key) != std::string::npos);
  }
}

TEST_CASE("experts of MiMo-V2.6 take 4 bits and a scale of 8 for 32 values") {
  nlohmann::json config = wild("mimo-v2.5");
  const auto bytes_of = [](const nlohmann::json& one) {
    const ModelSpec spec = spec_of(one);
    return stored_weights(spec, build_graph(spec, {})).bytes;
  };
  const Integer as_float8 = bytes_of(config);
  config["quantization_config"]["store_dtype"] = "mxfp4";
  config["quantization_config"]["mxfp4_block_size"] = 32;
  constexpr std::int64_t kValues = std::int64_t{47} * 256 * 3 * 2048 * 4096;
  constexpr std::int64_t kBlocks = kValues / (128 * 128);
  CHECK(as_float8 - bytes_of(config) == kValues + 4 * kBlocks - kValues / 2 - kValues / 32);
}

// arXiv 2510.19338, abstract: 16 billion parameters, 957 million activated, which leaves out the
// embedding and the head.
TEST_CASE("Ring-mini-linear 2.0 has its published parameters, and a cache of four layers") {
  const Parameters ring(wild("ring-mini-linear-2.0"));
  constexpr std::int64_t kTables = std::int64_t{2} * 157184 * 2048;
  CHECK(ring.total / 1'000'000'000 == 16);
  CHECK((ring.active - kTables + 500'000) / 1'000'000 == 957);
  // Four key-value heads of 128 in every fifth layer, and a matrix of 128 x 128 for each of 16
  // heads in the others.
  const ModelSpec spec = spec_of(wild("ring-mini-linear-2.0"));
  CHECK(cache_bytes(spec, 2048) - cache_bytes(spec, 1024) == Integer{1024 * 4 * 2 * 4 * 128 * 2});
  constexpr std::int64_t kStates = 16 * 16 * 128 * 128;
  CHECK(cache_bytes(spec, 1024) == Integer{1024 * 4 * 2 * 4 * 128 * 2 + 2 * kStates});
}

TEST_CASE("lightning attention of Ling is refused in forms that its class has no code for") {
  const nlohmann::json ring = wild("ring-mini-linear-2.0");
  nlohmann::json ling = read_json(data_folder() / "families/bailing_v2_5/config.json");
  ling.erase("qk_head_dim");
  const auto is_refused = [](nlohmann::json config, const char* key, const nlohmann::json& value) {
    config[key] = value;
    return refusal_of([&] { (void)spec_of(config); }).find(key) != std::string::npos;
  };
  CHECK(is_refused(ring, "linear_silu", true));
  CHECK(is_refused(ring, "use_qk_norm", false));
  CHECK(is_refused(ring, "group_norm_size", 5));
  CHECK(is_refused(ling, "rope_interleave", false));
  CHECK(is_refused(ling, "qk_rope_head_dim", 6));
}

TEST_CASE("Ling 2.5 keeps latents of some layers and states of the others") {
  const ModelSpec spec = spec_of(read_json(data_folder() / "families/bailing_v2_5/config.json"));
  // Two layers with 12 + 4 values a token; two with six heads of 8 x 8.
  CHECK(cache_bytes(spec, 64) == Integer{2 * (64 * 2 * 16 + 2 * 6 * 8 * 8)});
}

// Keys of Edge0-8B-A1B-preview, whose class is the published one of Ling 3.
TEST_CASE("Ling 3 has the same parameters by its published class and by that of transformers") {
  nlohmann::json config = ling_3();
  const ModelSpec spec = spec_of(config);
  CHECK(spec.unread_keys.empty());
  CHECK(spec.not_run.empty());
  const Integer published = parameters_of(config);
  config["architectures"] = {"BailingHybridForCausalLM"};
  CHECK(parameters_of(config) == published);
  config["use_kda_lora"] = true;
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("use_kda_lora") != std::string::npos);
}

TEST_CASE("Ling 3 with limits of SwiGLU by layer is counted, and not run") {
  nlohmann::json config = ling_3();
  config["expert_swiglu_limit_list"] = std::vector<int>(24, 0);
  CHECK(spec_of(config).not_run.empty());
  config["expert_swiglu_limit_list"][5] = 7;
  CHECK(spec_of(config).not_run.find("SwiGLU") != std::string::npos);
}

// stabilityai/stablelm-3b-4e1t as it was first published; its page states the total.
TEST_CASE("StableLM by the keys of its first class has its published parameters") {
  const nlohmann::json config{{"model_type", "stablelm_epoch"},
                              {"architectures", {"StableLMEpochForCausalLM"}},
                              {"hidden_act", "silu"},
                              {"hidden_size", 2560},
                              {"intermediate_size", 6912},
                              {"max_position_embeddings", 4096},
                              {"norm_eps", 1e-05},
                              {"num_attention_heads", 32},
                              {"num_heads", 32},
                              {"num_hidden_layers", 32},
                              {"num_key_value_heads", 32},
                              {"rope_pct", 0.25},
                              {"rope_theta", 10000},
                              {"rotary_scaling_factor", 1.0},
                              {"tie_word_embeddings", false},
                              {"use_qkv_bias", false},
                              {"vocab_size", 50304}};
  CHECK(parameters_of(config) == 2'795'443'200);
  CHECK(spec_of(config).position.rope.rotary_dim == 20);
}

// allenai/OLMo-1B and OLMo-7B; the totals are those of allenai/OLMo-1B-hf and OLMo-7B-hf.
TEST_CASE("OLMo by the keys of its own code has the parameters of transformers' class") {
  nlohmann::json config{{"activation_type", "swiglu"},
                        {"alibi", false},
                        {"alibi_bias_max", 8.0},
                        {"architectures", {"OLMoForCausalLM"}},
                        {"attention_dropout", 0.0},
                        {"attention_layer_norm", false},
                        {"attention_layer_norm_with_affine", false},
                        {"bias_for_layer_norm", false},
                        {"block_group_size", 1},
                        {"block_type", "sequential"},
                        {"clip_qkv", nullptr},
                        {"d_model", 2048},
                        {"embedding_dropout", 0.0},
                        {"embedding_size", 50304},
                        {"eos_token_id", 50279},
                        {"flash_attention", true},
                        {"include_bias", false},
                        {"init_cutoff_factor", nullptr},
                        {"init_device", "meta"},
                        {"init_fn", "mitchell"},
                        {"init_std", 0.02},
                        {"layer_norm_type", "default"},
                        {"layer_norm_with_affine", false},
                        {"max_sequence_length", 2048},
                        {"mlp_hidden_size", nullptr},
                        {"mlp_ratio", 8},
                        {"model_type", "hf_olmo"},
                        {"multi_query_attention", false},
                        {"n_heads", 16},
                        {"n_layers", 16},
                        {"pad_token_id", 1},
                        {"precision", "amp_bf16"},
                        {"residual_dropout", 0.0},
                        {"rope", true},
                        {"rope_full_precision", true},
                        {"scale_logits", false},
                        {"use_cache", true},
                        {"vocab_size", 50280},
                        {"weight_tying", true}};
  CHECK(parameters_of(config) == 1'176'764'416);
  CHECK(spec_of(config).unread_keys.empty());
  config["d_model"] = 4096;
  config["mlp_hidden_size"] = 22016;
  config["n_heads"] = 32;
  config["n_layers"] = 32;
  config["weight_tying"] = false;
  CHECK(parameters_of(config) == 6'888'095'744);
  for (const char* const key : {"alibi", "include_bias", "attention_layer_norm"}) {
    nlohmann::json other = config;
    other[key] = true;
    CHECK(refusal_of([&] { (void)spec_of(other); }).find(key) != std::string::npos);
  }
}

// transformers 5.24: RemBertModel and RemBertForMaskedLM with their defaults, which are the sizes
// of google/rembert, on the meta device.
TEST_CASE("RemBERT's words have a table of their own behind the last layer") {
  nlohmann::json config{{"model_type", "rembert"},   {"architectures", {"RemBertModel"}},
                        {"hidden_size", 1152},       {"input_embedding_size", 256},
                        {"intermediate_size", 4608}, {"num_attention_heads", 18},
                        {"num_hidden_layers", 32},   {"output_embedding_size", 1664},
                        {"vocab_size", 250300}};
  CHECK(parameters_of(config) == 575'920'384);
  CHECK(spec_of(config).not_run.empty());
  config["architectures"] = {"RemBertForMaskedLM"};
  CHECK(parameters_of(config) == 993'263'548);
  CHECK(spec_of(config).not_run.find("head") != std::string::npos);
}
