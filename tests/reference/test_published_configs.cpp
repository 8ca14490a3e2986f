// Published files as their authors write them: keys and spellings that the classes of transformers
// do not use. Parameters are those of the classes in transformers 5.24.0 on the meta device, or
// derived beside the test.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Graph graph_of(const nlohmann::json& config) { return build_graph(spec_of(config), {}); }

Integer total(const nlohmann::json& config) {
  const Graph graph = graph_of(config);
  return count_parameters(graph).total.evaluate(graph.sizes);
}

nlohmann::json published(const std::string& name) {
  return read_json(data_folder() / "published" / (name + ".config.json"));
}

/// K-EXAONE 236B-A23B, with the keys of LG AI Research's file.
nlohmann::json k_exaone() {
  nlohmann::json config{{"model_type", "exaone_moe"},
                        {"architectures", {"ExaoneMoEForCausalLM"}},
                        {"vocab_size", 153600},
                        {"hidden_size", 6144},
                        {"intermediate_size", 18432},
                        {"moe_intermediate_size", 2048},
                        {"num_hidden_layers", 48},
                        {"num_attention_heads", 64},
                        {"num_key_value_heads", 8},
                        {"head_dim", 128},
                        {"num_experts", 128},
                        {"num_experts_per_tok", 8},
                        {"num_shared_experts", 1},
                        {"first_k_dense_replace", 1},
                        {"num_nextn_predict_layers", 1},
                        {"sliding_window", 128},
                        {"sliding_window_pattern", "LLLG"}};
  for (int layer = 0; layer < 48; ++layer) config["is_moe_layer"].push_back(layer > 0);
  return config;
}

}  // namespace

TEST_CASE("K-EXAONE has its class's parameters, spelt as its authors do") {
  nlohmann::json config = k_exaone();
  CHECK(total(config) == 236571150336);
  config["is_moe_layer"][1] = false;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

// 64 layers of 2·5120·40·128 + 2·5120·8·128 + 3·5120·27392 + 2·128 + 2·5120; a norm, words and
// head.
TEST_CASE("EXAONE 4.0's LLLG is three layers with a window and one without") {
  nlohmann::json config = published("exaone-4.0-32b");
  CHECK(total(config) == 32003216384);
  const auto cached = [&] {
    const ModelSpec spec = spec_of(config);
    WorkloadRequest request;
    request.phase = Phase::decode;
    request.past_len = 100000;
    const Workload workload = resolve(request, spec);
    return kv_cache_use(spec, build_graph(spec, graph_options(workload)), workload, {})
        .value()
        .used_bytes;
  };
  const Integer by_letters = cached();
  config["sliding_window_pattern"] = 4;
  CHECK(cached() == by_letters);
  for (const char* const other : {"LLGL", "LLL", "", "XG"}) {
    config["sliding_window_pattern"] = other;
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}

TEST_CASE("Qwen3-ASR's published file describes a thinker, of the parameters of its class") {
  CHECK(total(published("qwen3-asr-0.6b")) == 782426112);
}

TEST_CASE("GLM-4.1V's text may stand beside its tower, and state the biases that its class has") {
  CHECK(total(published("glm-4.1v-9b")) == 10292777472);
}

TEST_CASE("a dense Hunyuan may state the experts of the others, if it is one") {
  nlohmann::json config{{"model_type", "hunyuan_v1_dense"},
                        {"architectures", {"HunYuanDenseV1ForCausalLM"}},
                        {"vocab_size", 128167},
                        {"hidden_size", 4096},
                        {"intermediate_size", 14336},
                        {"num_hidden_layers", 32},
                        {"num_attention_heads", 32},
                        {"num_key_value_heads", 8},
                        {"head_dim", 128},
                        {"num_experts", 1},
                        {"tie_word_embeddings", true}};
  CHECK(total(config) == 7504568320);
  config["num_experts"] = 2;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

// Llama 3.2 1B without its head: 128256·2048 words, 16 layers of 2·2048² + 2·512·2048 + 3·2048·8192
// + 2·2048, a norm of 2048. A ranking model has 2048 weights more.
TEST_CASE("NVIDIA's bidirectional Llama has Llama's parameters, and no KV-cache") {
  nlohmann::json config{{"model_type", "llama_bidirec"},
                        {"architectures", {"LlamaBidirectionalModel"}},
                        {"vocab_size", 128256},
                        {"hidden_size", 2048},
                        {"intermediate_size", 8192},
                        {"num_hidden_layers", 16},
                        {"num_attention_heads", 32},
                        {"num_key_value_heads", 8},
                        {"head_dim", 64},
                        {"pooling", "avg"},
                        {"temperature", 0.02}};
  CHECK(total(config) == 1235814400);
  CHECK_FALSE(spec_of(config).encoder->self_attention.causal);
  CHECK_FALSE(spec_of(config).decoder);
  config["architectures"] = {"LlamaBidirectionalForSequenceClassification"};
  config["num_labels"] = 1;
  CHECK(total(config) == 1235816448);
  CHECK(spec_of(config).head.classifier->input == ClassifierInput::mean_token);
}

// gte-Qwen2-7B-instruct: Qwen2's 28 layers with heads of 28 · 128; behind 4096 tokens, the mask
// left out 4096 · 4095 / 2 pairs.
TEST_CASE("an embedding model that states is_causal false attends to all pairs") {
  nlohmann::json config{{"model_type", "qwen2"},
                        {"architectures", {"Qwen2Model"}},
                        {"vocab_size", 151646},
                        {"hidden_size", 3584},
                        {"intermediate_size", 18944},
                        {"num_hidden_layers", 28},
                        {"num_attention_heads", 28},
                        {"num_key_value_heads", 4},
                        {"use_sliding_window", false},
                        {"sliding_window", 131072},
                        {"max_position_embeddings", 131072}};
  const auto flops = [&] {
    const ModelSpec spec = spec_of(config);
    WorkloadRequest request;
    request.seq_len = 4096;
    request.attention = AttentionImplementation::fused;
    const Workload workload = resolve(request, spec);
    return count(spec, workload).figures.forward.matrix_flops;
  };
  const Integer causal = flops();
  config["is_causal"] = false;
  CHECK(flops() - causal == Integer{28} * 4 * 28 * 128 * 4096 * 4095 / 2);
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 0;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

// NVIDIA stores the 43 · 256 experts of three matrices of 2048 · 4096 in NVFP4, with a scale of a
// byte per 16 values and two float32 numbers, where DeepSeek has one per 32: 1/32 byte a value
// more.
TEST_CASE("DeepSeek-V4's experts stored anew as NVFP4 take its bytes") {
  nlohmann::json config = published("deepseek-v4-flash-nvfp4");
  const auto bytes = [&] {
    const ModelSpec spec = spec_of(config);
    return stored_weights(spec, build_graph(spec, {})).bytes;
  };
  const Integer anew = bytes();
  config["quantization_config"].erase("quantized_layers");
  CHECK(anew - bytes() == Integer{43} * 256 * 3 * (4096 * 2048 / 32 + 2 * 4));
  CHECK(bytes() == 156015698140);  // of DeepSeek's own file
}

TEST_CASE("a whole number may be written with a point") {
  nlohmann::json config = published("exaone-4.0-32b");
  config["num_hidden_layers"] = 64.0;
  CHECK(total(config) == 32003216384);
  config["num_hidden_layers"] = 64.5;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

TEST_CASE("layers whose GEMMs differ in the type of their inputs are noted") {
  const auto notes = [](const char* name) {
    const auto file = std::string("quantization/") + name + ".config.json";
    return fmt::format("{}",
                       fmt::join(spec_of(read_json(data_folder() / file)).storage.notes, "\n"));
  };
  CHECK(notes("qwen3.6-35b-a3b-nvfp4").find("are 16-bit floats or float8;") != std::string::npos);
  CHECK(notes("gemma-4-31b-it-nvfp4").find("times take") == std::string::npos);
}

TEST_CASE("Phi-4 multimodal as Microsoft publishes it has the values of its files") {
  const Graph graph = graph_of(published("phi-4-multimodal"));
  const ParameterCount count = count_parameters(graph);
  // The headers of its files have 5,574,460,384 values, of which 160 are a spectrogram's means and
  // deviations.
  CHECK(count.total.evaluate(graph.sizes) == 5574460384 - 160);
  CHECK(count.parts.text.evaluate(graph.sizes) == 3836021760);  // of Phi-4-mini
  // Adapters of ranks 256 and 320 on four layers in each of 32: [r, in] and [out, r].
  constexpr std::int64_t kSides = (3072 + 5120) + (3072 + 3072) + (3072 + 16384) + (8192 + 3072);
  CHECK(count.parts.adapter.evaluate(graph.sizes) == 32 * (256 + 320) * kSides);
}

TEST_CASE("Phi-4 multimodal of other towers or adapters than those counted is refused") {
  using Pointer = nlohmann::json::json_pointer;
  const std::vector<std::pair<const char*, nlohmann::json>> changes{
      {"/embd_layer/embedding_cls", "image"},
      {"/embd_layer/image_embd_layer/crop_size", 336},
      {"/embd_layer/audio_embd_layer/use_qformer", true},
      {"/audio_processor/config/bias_in_glu", false},
      {"/audio_processor/config/relative_attention_bias_args/type", "t6"},
      {"/speech_lora/layer", "layers.*self_attn"},
      {"/vision_lora/r", nullptr}};
  for (const auto& change : changes) {
    const std::string key = change.first;
    CAPTURE(key);
    nlohmann::json config = published("phi-4-multimodal");
    config[Pointer(key)] = change.second;
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
  for (const char* const key : {"embd_layer", "audio_processor", "vision_lora", "speech_lora"}) {
    CAPTURE(std::string(key));
    nlohmann::json config = published("phi-4-multimodal");
    config.erase(key);
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}

TEST_CASE("ERNIE 4.5 VL as Baidu publishes it has the values of its files") {
  nlohmann::json config = published("ernie-4.5-vl-28b-a3b");
  // Summed by hand over the classes of its code (modeling_ernie4_5_vl.py).
  CHECK(total(config) == 29399294336);
  // ERNIE-4.5-VL-424B-A47B, whose files' headers have this total.
  config.update({{"hidden_size", 8192},
                 {"intermediate_size", 28672},
                 {"moe_intermediate_size", {3584, 1536}},
                 {"moe_k", 8},
                 {"moe_layer_end_index", {53, 53}},
                 {"moe_layer_start_index", {3, 3}},
                 {"num_attention_heads", 64},
                 {"num_hidden_layers", 54},
                 {"num_key_value_heads", 8},
                 {"tie_word_embeddings", false}});
  config.erase("moe_num_shared_experts");
  CHECK(total(config) == 423526285184);
}

TEST_CASE("ERNIE 4.5 VL with experts that its code does not have is refused") {
  for (const auto& change : std::vector<nlohmann::json>{{{"moe_layer_end_index", {20, 28}}},
                                                        {{"moe_intermediate_size", {1536}}},
                                                        {{"moe_num_experts", {64, 64, 64}}},
                                                        {{"pixel_hidden_size", 1024}},
                                                        {{"use_temporal_conv", false}}}) {
    CAPTURE(change.dump());
    nlohmann::json config = published("ernie-4.5-vl-28b-a3b");
    config.update(change);
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}
