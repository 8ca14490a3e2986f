// Keys that only another family reads: what it would change is not counted, so they are refused.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/model_source.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

/// Llama 3 8B's config.
json llama_8b() { return json::parse(find_preset("llama-3-8b")->json).at("config"); }

/// Keys of sizes, flags, lists and parts, each read by another family than Llama's.
json keys_of_other_families() {
  return json::parse(R"({
    "vision_config": {"hidden_size": 1152}, "text_config": {"hidden_size": 64},
    "audio_config": {"d_model": 1280}, "first_k_dense_replace": 3,
    "hybrid_override_pattern": "M-M*-", "linear_attn_config": {"head_dim": 128},
    "attn_output_gate": true, "mamba_d_state": 128, "mamba_headdim": 64,
    "conv_kernel": 4, "expand": 2, "d_head": 64, "lru_width": 2560, "mlp_ratio": 4.0, "ffn_mult": 2,
    "is_gated_act": true, "index_topk": 2048,
    "multi_query_attention": true, "kv_channels": 128, "full_attention_interval": 4,
    "decoder_sparse_step": 1, "attn_sinks": true, "hc_mult": 4,
    "vision_tower": "openai/clip-vit-large-patch14"
  })");
}

}  // namespace

TEST_CASE("a key that another family reads as a size or an operator is refused") {
  const json others = keys_of_other_families();
  for (const auto& item : others.items()) {
    CAPTURE(item.key());
    json config = llama_8b();
    config[item.key()] = item.value();
    CHECK(refusal_of([&] { (void)spec_of(config); }).find(item.key()) != std::string::npos);
  }
}

TEST_CASE("all keys of other families are listed at once, with their values") {
  json config = llama_8b();
  config.update(keys_of_other_families());
  const std::string refusal = refusal_of([&] { (void)spec_of(config); });
  CHECK(refusal.find("24 keys are unknown") != std::string::npos);
  CHECK(refusal.find("lru_width (2560)") != std::string::npos);
  CHECK(refusal.find("vision_config ({\"hidden_size\":1152})") != std::string::npos);
}

TEST_CASE("a key of another family that is off changes nothing") {
  const ModelSpec plain = spec_of(llama_8b());
  const json others = keys_of_other_families();
  for (const json& off : {json(nullptr), json(false), json(0), json::array(), json::object()}) {
    json config = llama_8b();
    for (const auto& item : others.items()) config[item.key()] = off;
    CHECK(spec_of(config).unread_keys == plain.unread_keys);
  }
}

// Qwen-VL and Qwen-Audio have `visual` and `audio`; GLM-4V-9B, of type chatglm, `vision_config`.
TEST_CASE("a tower is refused in a family of texts, by whatever name") {
  const json tower = {{"heads", 16}, {"image_size", 448}, {"layers", 48}, {"width", 1664}};
  for (const char* const key : {"visual", "audio", "vision_config", "retina"}) {
    CAPTURE(key);
    json config = llama_8b();
    config[key] = tower;
    CHECK(refusal_of([&] { (void)spec_of(config); }).find(key) != std::string::npos);
    config[key] = {{"colour", "blue"}};
    if (std::string(key) == "retina") CHECK(spec_of(config).unread_keys.front() == "retina");
  }
}

// Yi-6B before its files were renamed to Llama's: 6,061,035,520 parameters on its page.
TEST_CASE("Yi is Llama by another name") {
  const ModelSpec spec = spec_of({{"model_type", "Yi"},
                                  {"architectures", {"YiForCausalLM"}},
                                  {"hidden_size", 4096},
                                  {"intermediate_size", 11008},
                                  {"num_hidden_layers", 32},
                                  {"num_attention_heads", 32},
                                  {"num_key_value_heads", 4},
                                  {"vocab_size", 64000},
                                  {"rope_theta", 5000000.0},
                                  {"tie_word_embeddings", false}});
  const Graph graph = build_graph(spec, {});
  CHECK(count_parameters(graph).total.evaluate(graph.sizes) == 6'061'035'520);
}

TEST_CASE("lengths of texts and rates of dropout are no sizes of weights") {
  json config = llama_8b();
  config.update({{"model_max_length", 4096},
                 {"seq_length", 4096},
                 {"dropout", 0.1},
                 {"hidden_dropout_prob", 0.1}});
  CHECK(spec_of(config).unread_keys.size() == 4);
  json qwen = json::parse(find_preset("qwen3-8b")->json).at("config");
  qwen["max_sequence_length"] = 4096;
  CHECK(spec_of(qwen).unread_keys == std::vector<std::string>{"max_sequence_length"});
}

TEST_CASE("what a norm adds to a variance changes nothing, whatever its name") {
  const ModelSpec plain = spec_of(llama_8b());
  for (const char* const key : {"norm_eps", "ln_norm_epsilon", "group_norm_eps"}) {
    CAPTURE(key);
    json config = llama_8b();
    config[key] = 1e-5;
    CHECK(spec_of(config).unread_keys == plain.unread_keys);
    config[key] = "learned";
    CHECK(refusal_of([&] { (void)spec_of(config); }).find(key) != std::string::npos);
  }
}

// The number of token types that transformers' tests write into configs of decoders, too.
TEST_CASE("a decoder has no token types, an encoder with an unknown key for them is refused") {
  for (const char* const preset : {"llama-3-8b", "gpt2", "opt-125m", "bloom-560m"}) {
    CAPTURE(preset);
    json config = json::parse(find_preset(preset)->json).at("config");
    const std::size_t notes = spec_of(config).unread_keys.size();
    config["type_vocab_size"] = 16;
    CHECK(spec_of(config).unread_keys.size() == notes);
  }
  json vit = json::parse(find_preset("vit-base-patch16-224")->json).at("config");
  vit["type_vocab_size"] = 16;
  CHECK(refusal_of([&] { (void)spec_of(vit); }).find("type_vocab_size") != std::string::npos);
}

// Keys of MiniMax M3, Step 3.5 Flash, DeepSeek-V4, Hunyuan-Large, DeBERTa-v3, BLIP-2 and Swin.
TEST_CASE("a key that a reader takes by a constant or through a function is refused, too") {
  const json others = json::parse(R"({
    "index_topk_blocks": 16, "index_local_blocks": 1, "sparse_attention_freq": [0, 1],
    "swiglu_limits_shared": [0, 16], "compress_rope_theta": 160000, "hc_eps": 1e-6,
    "cla_share_factor": 2, "position_buckets": 256, "visual_encoder": "eva_clip_g",
    "depths": [2, 2, 6, 2]
  })");
  for (const auto& item : others.items()) {
    CAPTURE(item.key());
    json config = llama_8b();
    config[item.key()] = item.value();
    CHECK(refusal_of([&] { (void)spec_of(config); }).find(item.key()) != std::string::npos);
  }
}

TEST_CASE("a word under a name that readers take as a size or an object is noted") {
  for (const char* const key : {"size", "attention", "attn", "encoder", "decoder", "gating"}) {
    CAPTURE(key);
    json config = llama_8b();
    config[key] = "sdpa";
    CHECK(spec_of(config).unread_keys == std::vector<std::string>{key});
    config[key] = 4;
    CHECK(refusal_of([&] { (void)spec_of(config); }).find(key) != std::string::npos);
  }
}

TEST_CASE("settings of training and of engines, and flags at the only value, change nothing") {
  json config = llama_8b();
  config.update(json::parse(R"({
    "scale_attn_weights": true, "summary_use_proj": true, "normalize_embeddings": true,
    "layer_types": ["full_attention", "full_attention"],
    "use_sliding_window": false, "max_window_layers": 28,
    "tensor_parallel_size": 8, "ep_size": 1, "batch_size": 4, "num_train_epochs": 3, "num_gpus": 8,
    "tokenizer_vocab_size": 128256, "lora_r": 64, "lora_alpha": 16, "lora_enable": true,
    "training_args": {"num_train_epochs": 3}, "axolotl_config": {"lora_r": 8},
    "cache_config": {"block_size": 16}, "sentence_transformers": {"dim": 384}
  })"));
  CHECK(spec_of(config).unread_keys.empty());
}

TEST_CASE("an object of a tool's notes is noted, though parts of its keys' names say sizes") {
  json config = llama_8b();
  config["context_length"] = 8192;
  config["eagle_config"] = {{"use_aux_hidden_state", true}, {"num_steps", 3}};
  CHECK(spec_of(config).unread_keys == std::vector<std::string>{"context_length", "eagle_config"});
}

TEST_CASE(
    "other layers, and windows that are not turned off, are refused where no reader has them") {
  const auto refusal = [](const json& keys) {
    json config = llama_8b();
    config.update(keys);
    return refusal_of([&] { (void)spec_of(config); });
  };
  const json mixed = {{"layer_types", {"full_attention", "linear_attention"}}};
  CHECK(refusal(mixed).find("layer_types") != std::string::npos);
  CHECK(refusal({{"max_window_layers", 28}}).find("max_window_layers") != std::string::npos);
  CHECK(refusal({{"use_sliding_window", true}}).find("use_sliding_window") != std::string::npos);
}

// GPT-2's c_attn and GPT-J's lm_head have biases, and Gemma 3 normalises queries and keys, whatever
// the config says.
TEST_CASE("a flag that turns off what the model lacks changes nothing, and is refused elsewhere") {
  const auto with = [](const char* preset, const char* key) {
    json config = json::parse(find_preset(preset)->json).at("config");
    config[key] = false;
    return config;
  };
  for (const char* const key : {"qkv_bias", "use_qk_norm", "lm_head_bias", "score_bias"}) {
    CAPTURE(key);
    CHECK(spec_of(with("llama-3-8b", key)).unread_keys.empty());
  }
  CHECK(spec_of(with("bert-base-uncased", "use_qk_norm")).unread_keys.empty());
  CHECK(spec_of(with("deepseek-v3", "qkv_bias")).unread_keys.empty());
  const auto refusal = [](const json& config) {
    return refusal_of([&] { (void)spec_of(config); });
  };
  CHECK(refusal(with("gpt2", "qkv_bias")).find("qkv_bias") != std::string::npos);
  CHECK(refusal(with("bert-base-uncased", "qkv_bias")).find("qkv_bias") != std::string::npos);
  CHECK(refusal(with("bart-base", "qkv_bias")).find("qkv_bias") != std::string::npos);
  CHECK(refusal(with("deepseek-v3", "use_qk_norm")).find("use_qk_norm") != std::string::npos);
  CHECK(refusal(with("gpt-j-6b", "lm_head_bias")).find("lm_head_bias") != std::string::npos);
  CHECK(refusal(with("gemma-3-1b", "use_qk_norm")).find("use_qk_norm") != std::string::npos);
  CHECK(refusal(with("llama-3-8b", "mlp_norm_bias")).find("mlp_norm_bias") != std::string::npos);
}

// The scores of BERT's classifiers have a bias, those of Llama's none.
TEST_CASE("a flag of a head is that of the class that the config names") {
  const auto classifier = [](const char* preset, const char* name) {
    json config = json::parse(find_preset(preset)->json).at("config");
    config["architectures"] = {name};
    config["score_bias"] = false;
    return config;
  };
  CHECK(spec_of(classifier("llama-3-8b", "LlamaForSequenceClassification")).unread_keys.empty());
  const json bert = classifier("bert-base-uncased", "BertForSequenceClassification");
  CHECK(refusal_of([&] { (void)spec_of(bert); }).find("score_bias") != std::string::npos);
}

TEST_CASE("a flag beside the keys of a wrapped text model is that of the text model") {
  json config = read_json(data_folder() / "towers/tiny/llava.config.json");
  config["text_config"]["lm_head_bias"] = false;
  CHECK(spec_of(config).unread_keys.empty());
}
