// Families that are counted, of which some do not run: totals, FLOPs and states of their published
// code.
#include <doctest/doctest.h>

#include <vector>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/parallel_plan.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Integer parameters_of(const nlohmann::json& config) {
  const Graph graph = build_graph(spec_of(config), {});
  return count_parameters(graph).total.evaluate(graph.sizes);
}

nlohmann::json goose_world() {
  return {{"model_type", "rwkv7"},    {"architectures", {"RWKV7ForCausalLM"}},
          {"vocab_size", 65536},      {"hidden_size", 768},
          {"num_hidden_layers", 12},  {"head_dim", 64},
          {"decay_low_rank_dim", 64}, {"gate_low_rank_dim", 128},
          {"a_low_rank_dim", 64},     {"v_low_rank_dim", 32}};
}

nlohmann::json minicpmv() {
  return {{"model_type", "minicpmv"},
          {"architectures", {"MiniCPMV"}},
          {"version", 2.6},
          {"hidden_size", 3584},
          {"intermediate_size", 18944},
          {"num_hidden_layers", 28},
          {"num_attention_heads", 28},
          {"num_key_value_heads", 4},
          {"vocab_size", 151666},
          {"tie_word_embeddings", false},
          {"query_num", 64},
          {"image_size", 448},
          {"drop_vision_last_layer", false},
          {"batch_vision_input", true},
          {"use_image_id", true},
          {"slice_mode", true},
          {"slice_config", {{"max_slice_nums", 9}, {"patch_size", 14}}},
          {"vision_config",
           {{"model_type", "siglip"},
            {"hidden_size", 1152},
            {"image_size", 980},
            {"intermediate_size", 4304},
            {"num_attention_heads", 16},
            {"num_hidden_layers", 27},
            {"patch_size", 14}}}};
}

}  // namespace

TEST_CASE("RWKV-7 has the parameters of fla's class") {
  // RWKV7ForCausalLM of flash-linear-attention 0.6 on torch's meta device. The second is
  // RWKV7-World-0.1B (arXiv 2503.14456).
  CHECK(parameters_of({{"model_type", "rwkv7"}}) == 1366644736);
  CHECK(parameters_of(goose_world()) == 191034624);
  const nlohmann::json nulls{
      {"model_type", "rwkv7"},        {"hidden_size", 512},        {"num_hidden_layers", 3},
      {"vocab_size", 1000},           {"value_dim", 1024},         {"decay_low_rank_dim", nullptr},
      {"gate_low_rank_dim", nullptr}, {"a_low_rank_dim", nullptr}, {"v_low_rank_dim", nullptr},
      {"tie_word_embeddings", true}};
  CHECK(parameters_of(nulls) == 12638208);
}

TEST_CASE(
    "a token of RWKV-7 costs two FLOPs a weight of its GEMMs and four passes over the state") {
  constexpr std::int64_t kWidth = 768;
  constexpr std::int64_t kLayers = 12;
  std::int64_t weights = 65536 * kWidth;  // the head
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    weights += 4 * kWidth * kWidth + 8 * kWidth * kWidth;     // time and channel mixing
    weights += 2 * kWidth * (64 + 64 + 128);                  // decay, rate, gate
    if (layer > 0) weights += 2 * kWidth * std::int64_t{32};  // share of the first layer's values
  }
  // S·a, v·kᵀ, (S·a)·bᵀ and S·r of 12 heads of 64 × 64.
  const std::int64_t state = kLayers * 12 * 64 * 64;
  Workload workload;
  workload.seq_len = 10;
  const Counted counted = count(spec_of(goose_world()), workload);
  CHECK(counted.figures.forward.matrix_flops == 10 * (2 * weights + 4 * 2 * state));
}

TEST_CASE("RWKV-7 keeps a state of constant size") {
  Workload workload;
  workload.phase = Phase::decode;
  workload.past_len = 8191;
  const ModelSpec spec = spec_of(goose_world());
  const Graph graph = build_graph(spec, graph_options(workload));
  const auto use = kv_cache_use(spec, graph, workload, {}).value();
  // States of 12 heads of 64 × 64, and the last row of both mixings of each layer, in float32.
  CHECK(use.reserved_bytes == 4 * 12 * (12 * 64 * 64 + 2 * 768));
}

TEST_CASE("RWKV's layers have no heads that ranks could divide") {
  Workload workload;
  ParallelPlan plan;
  plan.tensor = 2;
  for (const char* const type : {"rwkv7", "rwkv"}) {
    CAPTURE(type);
    const ModelSpec spec = type == std::string("rwkv7") ? spec_of(goose_world())
                                                        : spec_of({{"model_type", "rwkv"},
                                                                   {"hidden_size", 64},
                                                                   {"num_hidden_layers", 2},
                                                                   {"vocab_size", 100}});
    const Graph graph = build_graph(spec, graph_options(workload));
    const ShardingLimits limits = limits_of(graph, workload.seq_len);
    CHECK(broken_rule(plan, limits) == PlanRule::layers_with_attention);
  }
  ParallelPlan stages;
  stages.pipeline = 2;
  const Graph graph = build_graph(spec_of(goose_world()), graph_options(workload));
  // Every layer reads the first one's values.
  CHECK(broken_rule(stages, limits_of(graph, workload.seq_len)) ==
        PlanRule::pipeline_separable_layers);
}

TEST_CASE("experts that only images use are no active parameters of ERNIE 4.5 VL") {
  const nlohmann::json config =
      read_json(data_folder() / "towers/tiny/ernie4_5_vl_moe.config.json");
  const Graph graph = build_graph(spec_of(config), {});
  const ParameterCount count = count_parameters(graph);
  const nlohmann::json& text = config.at("text_config");
  const auto width = text.at("hidden_size").get<std::int64_t>();
  const auto experts = text.at("moe_num_experts").get<std::int64_t>();
  const auto chosen = text.at("moe_k").get<std::int64_t>();
  const auto inner = text.at("moe_intermediate_size").get<std::vector<std::int64_t>>();
  // Of two layers with experts: the text's that a token does not choose, and the images' experts
  // with their router and its bias.
  const std::int64_t unchosen = (experts - chosen) * 3 * width * inner[0];
  const std::int64_t of_images = experts * (3 * width * inner[1] + width + 1);
  CHECK(count.total.evaluate(graph.sizes) - count.active.evaluate(graph.sizes) ==
        2 * (unchosen + of_images));
}

TEST_CASE(
    "the weights of Kimi K3 take the bytes of its files, but for what those have in float32") {
  const nlohmann::json config = read_json(data_folder() / "wild/kimi-k3.config.json");
  const ModelSpec spec = spec_of(config);
  const StoredWeights stored = stored_weights(spec, build_graph(spec, {}));
  // In the files, the convolutions, rates, decays and norms of 69 delta layers of 96 heads are
  // float32, with 128 rates: the class has 96 of them.
  constexpr std::int64_t kInner = 96 * 128;
  constexpr std::int64_t kFloat32 = 3 * kInner * 4 + kInner + 96 + 128;
  constexpr std::int64_t kUnusedRates = 128 - 96;
  constexpr std::int64_t kIndex = 1'560'860'324'864;  // its total_size
  CHECK(stored.bytes + 69 * (kFloat32 * 2 + kUnusedRates * 4) == kIndex);
}

TEST_CASE("RWKV-7 is refused where its code would differ") {
  for (const auto& change : std::vector<nlohmann::json>{{{"attn", {{"layers", {0}}}}},
                                                        {{"hidden_act", "relu"}},
                                                        {{"head_dim", 50}},
                                                        {{"value_dim", {768, 1536}}}}) {
    auto config = goose_world();
    config.update(change);
    CAPTURE(change.dump());
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}

TEST_CASE("MiniCPM-V 2.6 has the parameters of its parts") {
  // Qwen2-7B (7,615,616,512 with 152,064 words) with 151,666 words in two tables.
  constexpr std::int64_t kText = 7615616512 - std::int64_t{2} * 3584 * (152064 - 151666);
  // SigLIP of 27 layers, 1152 wide: a convolution of 14 × 14, 70² positions, the last norm.
  constexpr std::int64_t kAttention = std::int64_t{4} * (1152 * 1152 + 1152);
  constexpr std::int64_t kNetwork = std::int64_t{2} * 1152 * 4304 + 4304 + 1152;
  constexpr std::int64_t kTower = (std::int64_t{3} * 14 * 14 + 1) * 1152 +
                                  std::int64_t{4900} * 1152 +
                                  27 * (kAttention + kNetwork + 4 * 1152) + 2 * 1152;
  // The resampler: 64 queries, keys and values of 3584 features, attention, three norms, a product.
  constexpr std::int64_t kResampler = std::int64_t{64} * 3584 + std::int64_t{3584} * 1152 +
                                      std::int64_t{4} * (3584 * 3584 + 3584) +
                                      std::int64_t{6} * 3584 + std::int64_t{3584} * 3584;
  CHECK(parameters_of(minicpmv()) == kText + kTower + kResampler);
  auto config = minicpmv();
  config["version"] = 2.5;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

// Keys of the published config as tests of Huawei's MindIE (flash_causal_hunyuan) quote them, and
// --use_mixed_mlp_moe of Tencent's train.sh.
TEST_CASE("Hunyuan-Large has 389 billion parameters, and one cache for two layers") {
  const nlohmann::json config{
      {"model_type", "hunyuan"},
      {"architectures", {"HunYuanForCausalLM"}},
      {"cla_share_factor", 2},
      {"hidden_size", 6400},
      {"intermediate_size", 18304},
      {"max_position_embeddings", 131072},
      {"moe_topk", 1},
      {"num_attention_heads", 80},
      {"num_experts", 16},
      {"num_hidden_layers", 64},
      {"num_key_value_heads", 8},
      {"num_shared_expert", 1},
      {"rms_norm_eps", 1e-05},
      {"rope_scaling", {{"alpha", 1000.0}, {"factor", 1.0}, {"type", "dynamic"}}},
      {"rope_theta", 10000.0},
      {"tie_word_embeddings", true},
      {"use_cla", true},
      {"use_mixed_mlp_moe", true},
      {"use_qk_norm", true},
      {"vocab_size", 129024}};
  constexpr std::int64_t kWidth = 6400;
  constexpr std::int64_t kExpert = std::int64_t{3} * kWidth * 18304;
  constexpr std::int64_t kKeysAndValues = std::int64_t{2} * kWidth * 8 * 80;
  // Queries and output, router, two norms of the layer and two of heads of 80.
  constexpr std::int64_t kLayer = 2 * kWidth * kWidth + 16 * kWidth + 2 * kWidth + 2 * 80;
  constexpr std::int64_t kTotal =
      129024 * kWidth + kWidth + 64 * (kLayer + 17 * kExpert) + 32 * kKeysAndValues;
  const ModelSpec spec = spec_of(config);
  const Graph graph = build_graph(spec, {});
  const ParameterCount parameters = count_parameters(graph);
  CHECK(parameters.total.evaluate(graph.sizes) == kTotal);
  CHECK(kTotal / 1'000'000'000 == 388);  // 389 billion, rounded (arXiv 2411.02265)
  CHECK(parameters.active.evaluate(graph.sizes) == kTotal - 64 * 15 * kExpert);
  Workload workload;
  workload.seq_len = 4096;
  workload.kv_dtype = DType::float16;
  // Two layers share keys and values (arXiv 2411.02265).
  const Counted counted = count(spec, workload);
  CHECK(counted.figures.kv_cache_bytes == 2 * 4096 * 32 * 2 * 8 * 80);
  // Products with the scores and the values are those of all layers, projections of keys are not.
  const std::int64_t of_weights = kTotal - 64 * (15 * kExpert + 2 * kWidth + 2 * 80) - kWidth;
  const std::int64_t of_pairs = std::int64_t{64} * 2 * 2 * 80 * 80 * 4096;
  CHECK(counted.figures.forward.matrix_flops == 4096 * (2 * of_weights + of_pairs));
}

// Of the size that upstage/solar-pro-preview-instruct states, 22 billion, with the connections that
// its SolarConfig has by default. The exact sum is held by the tiny model in towers/tiny.csv.
// vLLM's SolarModel.forward multiplies two addends and adds them, at each of the layers of bskcn_3
// and bskcn_4; torch saves nothing for the backward pass of a product with a number.
TEST_CASE("SOLAR Pro has Llama's parameters and costs, and three operations for each connection") {
  nlohmann::json config{{"model_type", "solar"},     {"architectures", {"SolarForCausalLM"}},
                        {"hidden_size", 5120},       {"intermediate_size", 17920},
                        {"num_attention_heads", 40}, {"num_hidden_layers", 64},
                        {"num_key_value_heads", 10}, {"vocab_size", 32128},
                        {"sliding_window", 2047},    {"bskcn_1", {12, 20, 32, 44}},
                        {"bskcn_2", {20, 32}},       {"bskcn_3", {16, 24, 36, 48}},
                        {"bskcn_4", {28, 40}},       {"bskcn_tv", {0.9, 0.8}}};
  CHECK(parameters_of(config) / 1'000'000'000 == 22);
  const ModelSpec spec = spec_of(config);
  CHECK(spec.unread_keys.empty());
  CHECK(spec.assumptions.empty());
  CHECK(spec.not_run.empty());
  for (const char* const key :
       {"bskcn_1", "bskcn_2", "bskcn_3", "bskcn_4", "bskcn_tv", "sliding_window"}) {
    config.erase(key);
  }
  const std::vector<std::string> filled = spec_of(config).assumptions;
  REQUIRE(filled.size() == 1);
  CHECK(filled.front().find("bskcn_3 [16, 24, 36, 48]") != std::string::npos);
  config["model_type"] = "llama";
  config["architectures"] = {"LlamaForCausalLM"};
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 7;
  for (const Phase phase : {Phase::prefill, Phase::train}) {
    workload.phase = phase;
    const Figures solar = count(spec, workload).figures;
    const Figures llama = count(spec_of(config), workload).figures;
    CHECK(solar.parameters == llama.parameters);
    CHECK(solar.forward.matrix_flops == llama.forward.matrix_flops);
    CHECK(solar.forward.elementwise_flops - llama.forward.elementwise_flops ==
          Integer{6 * 3} * 2 * 7 * 5120);
    CHECK(solar.kv_cache_bytes == llama.kv_cache_bytes);
    CHECK(solar.saved_activation_bytes == llama.saved_activation_bytes);
  }
}

TEST_CASE("SOLAR Pro's connections begin in front of them, and keep all layers on one stage") {
  nlohmann::json config = read_json(data_folder() / "families/solar/config.json");
  ParallelPlan stages;
  stages.pipeline = 2;
  const Graph graph = build_graph(spec_of(config), {});
  CHECK(broken_rule(stages, limits_of(graph, 8)) == PlanRule::pipeline_separable_layers);
  for (const auto& wrong : {std::pair{"bskcn_3", nlohmann::json::array({0})},
                            std::pair{"bskcn_tv", nlohmann::json::array({0.8})}}) {
    nlohmann::json changed = config;
    changed[wrong.first] = wrong.second;
    const std::string refusal = refusal_of([&] { (void)spec_of(changed); });
    CHECK(refusal.find(wrong.first) != std::string::npos);
  }
  for (const char* const key : {"bskcn_3", "bskcn_4"}) config[key] = nlohmann::json::array();
  const Graph alone = build_graph(spec_of(config), {});
  CHECK_FALSE(broken_rule(stages, limits_of(alone, 8)).has_value());
}

// facebook/nllb-moe-54b's sizes in NllbMoeForConditionalGeneration of transformers 5.24 on the meta
// device; 54.5 billion in arXiv 2207.04672.
TEST_CASE("NLLB-MoE has the 54.5 billion parameters of its class") {
  const nlohmann::json config{
      {"model_type", "nllb-moe"},      {"d_model", 2048},         {"decoder_attention_heads", 16},
      {"decoder_ffn_dim", 8192},       {"decoder_layers", 24},    {"decoder_sparse_step", 4},
      {"encoder_attention_heads", 16}, {"encoder_ffn_dim", 8192}, {"encoder_layers", 24},
      {"encoder_sparse_step", 4},      {"num_experts", 128},      {"vocab_size", 256206}};
  CHECK(parameters_of(config) == 54'500'569'088);
}

TEST_CASE("NLLB-MoE and Switch Transformers are refused where one stack alone has experts") {
  nlohmann::json nllb{{"model_type", "nllb-moe"}};
  CHECK(spec_of(nllb).not_run.empty());
  nllb["decoder_sparse_step"] = 0;
  CHECK_THROWS_AS((void)spec_of(nllb), Error);
  nllb["encoder_sparse_step"] = 0;
  CHECK(parameters_of(nllb) == parameters_of({{"model_type", "m2m_100"}}));
  nlohmann::json switched{{"model_type", "switch_transformers"}};
  CHECK(spec_of(switched).not_run.empty());
  switched["decoder_sparse_step"] = 0;
  CHECK_THROWS_AS((void)spec_of(switched), Error);
}

TEST_CASE("experts of NLLB-MoE that drop tokens are counted, and not run") {
  nlohmann::json config{{"model_type", "nllb-moe"}};
  const Integer whole = parameters_of(config);
  config["moe_eval_capacity_token_fraction"] = 0.5;
  CHECK(parameters_of(config) == whole);
  CHECK(spec_of(config).not_run.find("capacity") != std::string::npos);
}

TEST_CASE("ChatGLM-6B has the parameters of its published module") {
  // Linear layers with biases, LayerNorms and one table, of modeling_chatglm.py.
  constexpr std::int64_t kLayer = std::int64_t{4} * (4096 * 4096 + 4096) +
                                  std::int64_t{2} * 4096 * 16384 + 16384 + 4096 + 4 * 4096;
  constexpr std::int64_t kTotal = 28 * kLayer + std::int64_t{130528} * 4096 + 2 * 4096;
  const nlohmann::json config{{"model_type", "chatglm"},      {"architectures", {"ChatGLMModel"}},
                              {"hidden_size", 4096},          {"inner_hidden_size", 16384},
                              {"layernorm_epsilon", 1e-5},    {"max_sequence_length", 2048},
                              {"num_attention_heads", 32},    {"num_layers", 28},
                              {"position_encoding_2d", true}, {"vocab_size", 130528}};
  // PEFT counts 6,176,956,416 with the 3,670,016 of an adapter (github.com/shibing624/textgen,
  // issue 40).
  static_assert(kTotal == 6176956416 - 3670016);
  CHECK(parameters_of(config) == kTotal);
  CHECK(spec_of(config).unread_keys.empty());
  CHECK(spec_of(config).not_run.find("two dimensions") != std::string::npos);
}

TEST_CASE("MiniMax-Text-01 as published is the model that transformers calls MiniMax") {
  nlohmann::json published{{"model_type", "minimax_text_01"},
                           {"architectures", {"MiniMaxText01ForCausalLM"}},
                           {"hidden_size", 6144},
                           {"intermediate_size", 9216},
                           {"num_hidden_layers", 80},
                           {"num_attention_heads", 64},
                           {"num_key_value_heads", 8},
                           {"head_dim", 128},
                           {"vocab_size", 200064},
                           {"num_local_experts", 32},
                           {"num_experts_per_tok", 2},
                           {"layernorm_full_attention_alpha", 3.5565588200778455},
                           {"layernorm_full_attention_beta", 1.0},
                           {"layernorm_linear_attention_alpha", 3.5565588200778455},
                           {"layernorm_linear_attention_beta", 1.0},
                           {"layernorm_mlp_alpha", 3.5565588200778455},
                           {"layernorm_mlp_beta", 1.0},
                           {"postnorm", true},
                           {"rotary_dim", 64},
                           {"rope_theta", 10000000},
                           {"shared_intermediate_size", 0},
                           {"shared_moe_mode", "sigmoid"},
                           {"sliding_window", nullptr},
                           {"tie_word_embeddings", false}};
  for (int layer = 1; layer <= 80; ++layer) {
    published["attn_type_list"].push_back(layer % 8 == 0 ? 1 : 0);
  }
  CHECK(parameters_of(published) == 456089655296);  // the safetensors total of the repository
}

TEST_CASE("MiniMax M3 caches index keys beside keys and values") {
  Workload workload;
  workload.seq_len = 8192;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  const ModelSpec spec = spec_of(read_json(data_folder() / "wild/minimax-m3.config.json"));
  const Graph graph = build_graph(spec, graph_options(workload));
  const auto use = kv_cache_use(spec, graph, workload, {}).value();
  // The cache of MiniMaxM3SparseForConditionalGeneration of these sizes (transformers 5.16):
  // 1,006,632,960 bytes of keys and values, and idx_keys of 57 layers.
  CHECK(use.reserved_bytes == 1126170624);
}

TEST_CASE(
    "Mistral Large 4 caches latent vectors where they are projected, and index keys in each "
    "layer") {
  Workload workload;
  workload.seq_len = 8;
  const auto file = data_folder() / "towers/tiny/mistral_large4.config.json";
  const ModelSpec spec = spec_of(read_json(file));
  const Graph graph = build_graph(spec, graph_options(workload));
  const auto use = kv_cache_use(spec, graph, workload, {}).value();
  // Of five layers, two project 16 numbers and a rotary key of 4, and one without RoPE only the 16;
  // index keys have 8.
  const Integer per_token = 2 * (16 + 4) + 16 + 5 * 8;
  CHECK(use.reserved_bytes == 4 * 8 * per_token);
}

TEST_CASE("HunyuanOCR has the parameters of its class, its text's keys beside the tower's config") {
  const nlohmann::json rope{
      {"type", "xdrope"}, {"alpha", 1000.0}, {"factor", 1.0}, {"xdrope_section", {16, 16, 16, 16}}};
  const nlohmann::json vision{{"hidden_size", 1152},     {"intermediate_size", 4304},
                              {"num_hidden_layers", 27}, {"num_attention_heads", 16},
                              {"patch_size", 16},        {"max_image_size", 2048},
                              {"spatial_merge_size", 2}, {"num_channels", 3}};
  // HunYuanVLForConditionalGeneration of transformers 5.24 with these keys, on the meta device.
  CHECK(parameters_of({{"model_type", "hunyuan_vl"},
                       {"architectures", {"HunYuanVLForConditionalGeneration"}},
                       {"hidden_size", 1024},
                       {"intermediate_size", 3584},
                       {"num_hidden_layers", 24},
                       {"num_attention_heads", 16},
                       {"num_key_value_heads", 8},
                       {"head_dim", 128},
                       {"attention_head_dim", 128},
                       {"vocab_size", 120818},
                       {"rope_scaling", rope},
                       {"tie_word_embeddings", true},
                       {"vision_config", vision}}) == 996208112);
}

TEST_CASE("Mistral Large 4 and Kolibri 1 have the parameters of their classes") {
  // transformers 5.24 on torch's meta device: MistralLarge4Config and Kolibri1Config as they are.
  CHECK(parameters_of({{"model_type", "mistral_large4"}}) == 1051822421536);
  CHECK(parameters_of({{"model_type", "kolibri1"}}) == 78103055360);
  CHECK_THROWS_AS((void)spec_of({{"model_type", "kolibri1"}, {"sliding_window", nullptr}}), Error);
}

TEST_CASE("an image encoder with a text decoder has the parameters of VisionEncoderDecoderModel") {
  // Classes of transformers 5.24 on torch's meta device. The first is TrOCR's base model.
  const nlohmann::json vit{{"model_type", "vit"}, {"image_size", 384}, {"qkv_bias", false}};
  const nlohmann::json trocr{{"model_type", "trocr"}, {"cross_attention_hidden_size", 768}};
  CHECK(parameters_of(
            {{"model_type", "vision-encoder-decoder"}, {"encoder", vit}, {"decoder", trocr}}) ==
        333921792);
  const nlohmann::json deit{{"model_type", "deit"},     {"hidden_size", 192},
                            {"num_hidden_layers", 3},   {"num_attention_heads", 3},
                            {"intermediate_size", 768}, {"image_size", 384}};
  const nlohmann::json small{{"model_type", "trocr"},
                             {"d_model", 256},
                             {"decoder_layers", 6},
                             {"decoder_attention_heads", 8},
                             {"decoder_ffn_dim", 1024},
                             {"vocab_size", 64044},
                             {"use_learned_position_embeddings", false},
                             {"layernorm_embedding", false},
                             {"scale_embedding", true}};
  CHECK(parameters_of(
            {{"model_type", "vision-encoder-decoder"}, {"encoder", deit}, {"decoder", small}}) ==
        24396352);
  const nlohmann::json captions{{"model_type", "gpt2"}, {"add_cross_attention", true}};
  CHECK(parameters_of({{"model_type", "vision-encoder-decoder"},
                       {"encoder", {{"model_type", "vit"}}},
                       {"decoder", captions}}) == 239195904);
  CHECK_THROWS_AS((void)spec_of({{"model_type", "vision-encoder-decoder"}}), Error);
}

TEST_CASE("the towers of Kimi K3 and Mistral 3 are counted apart from their text models") {
  for (const CsvRow& row : read_csv(data_folder() / "wild/params.csv")) {
    if (row.at("name") != "kimi-k3" && row.at("name") != "ministral3-3b-2512") continue;
    CAPTURE(row.at("name"));
    const auto file = data_folder() / "wild" / (row.at("name") + ".config.json");
    const Graph graph = build_graph(spec_of(read_json(file)), {});
    const ParameterCount count = count_parameters(graph);
    CHECK(count.parts.text.evaluate(graph.sizes) == number(row, "params_text"));
    CHECK(count.parts.vision.evaluate(graph.sizes) == number(row, "params_vision"));
    CHECK(count.parts.projector.evaluate(graph.sizes) == number(row, "params_projector"));
  }
}
