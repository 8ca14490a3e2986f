// Keys that no reader knows: harmless ones are ignored, others noted, and structural ones refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "support/data.h"
#include "support/python_json.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

/// Attributes of every pretrained config, at their defaults: those of PretrainedConfig and
/// GenerationConfig of transformers 4.45, 4.57 and 5.
json common_attributes() { return read_json(data_folder() / "common_attributes.json"); }

/// "text_config", "vision_config", and the two models of T5Gemma and of encoder–decoders.
bool names_sub_config(const std::string& key) {
  if (key == "encoder" || key == "decoder") return true;
  return key.ends_with("_config") && key != "attn_config" && key != "per_layer_config";
}

/// Adds `attributes` to `object` and to every nested config, where they are not set.
void add_to_all(json& object, const json& attributes) {
  for (auto& [key, value] : object.items()) {
    if (names_sub_config(key) && value.is_object()) add_to_all(value, attributes);
  }
  for (const auto& [key, value] : attributes.items()) {
    if (!object.contains(key)) object[key] = value;
  }
}

json config_of(const Preset& preset) {
  const json document = json::parse(preset.json);
  json config = document.at("config");
  if (document.contains("overrides")) config.update(document.at("overrides"));
  return config;
}

ModelSpec read(const json& config) { return read_model_spec(config.dump(), "config.json", "test"); }

Integer parameters_of(const ModelSpec& spec) {
  const Graph graph = build_graph(spec, {});
  return count_parameters(graph).total.evaluate(graph.sizes);
}

/// Adds the model types of a config and of its sub-configs.
void add_types(const json& config, std::set<std::string>& types) {
  for (const auto& [key, value] : config.items()) {
    const bool is_type = key == "model_type" || key == "_class_name";
    if (is_type) types.insert(value.get<std::string>());
    if (value.is_object()) add_types(value, types);
  }
}

/// The published config `from`, as one of another type: aliases and near-clones.
json with_type(json from, const std::string& type) {
  from["model_type"] = type;
  from.erase("architectures");
  return from;
}

json tower(const std::string& name) {
  return read_with_infinity(data_folder() / "towers/tiny" / (name + ".config.json"));
}

/// Configs of types that no file has: their towers have the sizes of their classes.
std::map<std::string, json> derived_configs() {
  const json falcon = config_of(find_preset("falcon-7b").value());
  const json qwen2 = config_of(find_preset("qwen2-0.5b").value());
  const json llama_text = config_of(find_preset("tinyllama-1.1b").value());
  std::map<std::string, json> configs;
  for (const char* const type : {"RefinedWeb", "RefinedWebModel"}) {
    configs[type] = with_type(falcon, type);
  }
  for (const char* const type : {"qwen2_vl_text", "qwen2_5_vl_text"}) {
    configs[type] = with_type(qwen2, type);
  }
  for (const char* const type : {"eagle3", "dflash"}) {
    const std::string name = std::string("qwen3-8b-") + type + ".config.json";
    configs[type] = with_type(read_with_infinity(data_folder() / "drafts" / name), type);
  }
  configs["Yi"] = with_type(llama_text, "Yi");
  configs["AXK1"] = with_type(tower("axk1"), "AXK1");
  configs["lfm2-vl"] = with_type(tower("lfm2_vl"), "lfm2-vl");
  configs["Glm4vMoe_text"] = with_type(tower("glm4v_moe").at("text_config"), "Glm4vMoe_text");
  configs["gpt-sw3"] = with_type(config_of(find_preset("gpt2").value()), "gpt-sw3");
  for (const char* const type : {"minimax_m1", "minimax_text_01"}) {
    configs[type] = with_type(config_of(find_preset("minimax-text-01").value()), type);
  }
  configs["musicflamingo"] = with_type(tower("audioflamingo3"), "musicflamingo");
  configs["new"] = with_type(tower("gte"), "new");
  configs["smolvlm"] = with_type(tower("idefics3"), "smolvlm");
  configs["voxtral"] = {{"model_type", "voxtral"}, {"text_config", llama_text}};
  configs["glm4v_moe"] = {
      {"model_type", "glm4v_moe"},
      {"text_config", with_type(config_of(find_preset("glm-4.5-air").value()), "glm4v_moe_text")}};
  configs["Transformer2DModel"] = config_of(find_preset("pixart-sigma-xl").value());
  configs["Transformer2DModel"]["_class_name"] = "Transformer2DModel";
  const json minimax = read_with_infinity(data_folder() / "towers/minimax-m3.config.json");
  configs["minimax_m3_vl"] = minimax;
  configs["minimax_m3_vl_text"] = with_type(minimax.at("text_config"), "minimax_m3_vl_text");
  return configs;
}

/// True unless the type is one that headroom refuses.
bool is_known(const json& config) {
  const std::vector<ModelTypeInfo> types = list_model_types();
  const std::string type = config.value("model_type", "");
  return std::ranges::find(types, type, &ModelTypeInfo::model_type) != types.end();
}

/// At least one config of every model type: the presets, and the test data's.
std::map<std::string, json> configs_of_all_families() {
  std::map<std::string, json> configs = derived_configs();
  for (const Preset& preset : list_presets()) configs[preset.name] = config_of(preset);
  for (const char* const folder : {"defaults", "golden/tiny", "towers/tiny", "encoders/tiny",
                                   "state_spaces/configs", "published", "wild"}) {
    for (const auto& entry : std::filesystem::directory_iterator(data_folder() / folder)) {
      if (entry.path().extension() != ".json") continue;
      json config = read_with_infinity(entry.path());
      if (config.contains("config")) config = config.at("config");
      if (is_known(config)) configs[entry.path().string()] = std::move(config);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "families")) {
    configs[entry.path().string()] = read_with_infinity(entry.path() / "config.json");
  }
  return configs;
}

json llama() { return config_of(find_preset("tinyllama-1.1b").value()); }

/// A config of `type` with the keys that its class requires, and the type of the text model in
/// `keys`.
json least_config(const std::string& type, const json& keys) {
  if (type == "bailing_moe_v2")
    return read_with_infinity(data_folder() / "families/bailing_moe_v2/config.json");
  json config{{"model_type", type}};
  if (type == "zamba2") config["hidden_size"] = 2560;
  if (type == "dots1") config.update({{"n_routed_experts", 8}, {"num_experts_per_tok", 2}});
  if (keys.contains("text_config")) {
    config["text_config"] = {{"model_type", keys["text_config"]["model_type"]}};
  }
  return config;
}

}  // namespace

// Keys of published repositories that their classes in transformers 5.24 do not read:
// ERNIE-4.5-21B, Granite 4.0, Falcon-H1, Hunyuan-A13B, Nemotron Nano 9B v2, Zamba2-1.2B, dots.llm1,
// Ling-mini-2.0, wav2vec2-base, PaliGemma 2 9B (1024 positions by its text size, whatever its
// image: convert_paligemma2_weights_to_hf.py), CLIP, SmolVLM, InternVL3.5, RecurrentGemma.
TEST_CASE("keys that published configs have and their classes do not read change nothing") {
  const std::map<std::string, json> published{
      {"ernie4_5_moe",
       {{"use_rmsnorm", true}, {"num_nextn_predict_layers", 1}, {"moe_group", "dp"}}},
      {"granitemoehybrid", {{"normalization_function", "rmsnorm"}, {"init_method", "mup"}}},
      {"falcon_h1", {{"mlp_expansion_factor", 8}}},
      {"hunyuan_v1_moe",
       {{"num_media_embeds", 257}, {"vit_norm_type", "fused"}, {"dense_list", {4096, 0}}}},
      {"nemotron_h", {{"num_query_groups", 2}}},
      {"zamba2",
       {{"ffn_hidden_size", 2560}, {"num_query_groups", 2}, {"use_shared_block_lora", true}}},
      {"dots1", {{"scoring_func", "noaux_tc"}}},
      {"wav2vec2", {{"mask_channel_length", 10}, {"freeze_feat_extract_train", true}}},
      {"paligemma",
       {{"_vocab_size", 257152},
        {"vision_config",
         {{"hidden_size", 1152},
          {"intermediate_size", 4096},
          {"num_hidden_layers", 27},
          {"num_attention_heads", 16},
          {"patch_size", 14},
          {"image_size", 224},
          {"vision_use_head", false},
          {"num_positions", 1024}}}}},
      {"clip_vision_model", {{"num_positions", 50}}},
      {"recurrent_gemma", {{"embeddings_scale_by_sqrt_dim", true}}},
      {"smolvlm",
       {{"do_image_splitting", true},
        {"text_config",
         {{"model_type", "llama"},
          {"architectures", {"VLlama3ForCausalLM"}},
          {"qk_layer_norms", false},
          {"use_resampler", false},
          {"perceiver_config", {{"resampler_depth", 6}}}}}}},
      {"internvl",
       {{"text_config", {{"model_type", "qwen2"}, {"ep_size", 1}, {"use_deepep", false}}}}}};
  for (const auto& entry : published) {
    CAPTURE(entry.first);
    const auto& [type, keys] = entry;
    json config = least_config(type, keys);
    const Integer plain = parameters_of(read(config));
    config.update(keys);
    const ModelSpec spec = read(config);
    CHECK(spec.unread_keys.empty());
    CHECK(parameters_of(spec) == plain);
  }
}

// Values that name another operator or another size than the class has.
TEST_CASE("values of training code's keys that would change a figure are refused") {
  struct Refused {
    const char* type;
    const char* key;
    json value;
  };
  const std::vector<Refused> cases{{"ernie4_5_moe", "use_rmsnorm", false},
                                   {"bailing_moe_v2", "use_rmsnorm", false},
                                   {"granitemoehybrid", "normalization_function", "layernorm"},
                                   {"zamba2", "gated_linear_unit", false},
                                   {"recurrent_gemma", "embeddings_scale_by_sqrt_dim", false},
                                   {"smolvlm", "qk_layer_norms", true},
                                   {"smolvlm", "use_resampler", true}};
  for (const Refused& refused : cases) {
    CAPTURE(std::string(refused.type));
    CAPTURE(std::string(refused.key));
    const bool wraps = std::string(refused.type) == "smolvlm";
    const json keys = wraps ? json{{"text_config", {{"model_type", "llama"}}}} : json::object();
    json config = least_config(refused.type, keys);
    REQUIRE_NOTHROW((void)read(config));
    (wraps ? config["text_config"] : config)[refused.key] = refused.value;
    CHECK(refusal_of([&] { (void)read(config); }).find(refused.key) != std::string::npos);
  }
}

// MiniCPM3-4B: transformers 5.24 counts 4,073,875,968 parameters. Only 32 of a head's dimensions
// turn, as in a config that leaves their number to the class.
TEST_CASE("RoPE of latent attention has a factor for each pair that it turns") {
  const std::vector<double> factors(16, 1.0);
  json config{{"model_type", "minicpm3"},
              {"hidden_size", 2560},
              {"intermediate_size", 6400},
              {"num_hidden_layers", 62},
              {"num_attention_heads", 40},
              {"num_key_value_heads", 40},
              {"vocab_size", 73448},
              {"kv_lora_rank", 256},
              {"q_lora_rank", 768},
              {"qk_nope_head_dim", 64},
              {"qk_rope_head_dim", 32},
              {"tie_word_embeddings", true},
              {"rope_scaling",
               {{"type", "longrope"},
                {"long_factor", factors},
                {"short_factor", factors},
                {"original_max_position_embeddings", 32768}}}};
  CHECK(parameters_of(read(config)) == 4'073'875'968);
  config.erase("qk_rope_head_dim");
  CHECK(parameters_of(read(config)) == 4'073'875'968);
}

TEST_CASE("a delta layer's gate is SiLU under either name, and another one is refused") {
  json config{{"model_type", "qwen3_5"}, {"text_config", {{"output_gate_type", "swish"}}}};
  CHECK(read(config).unread_keys.empty());
  config["text_config"]["output_gate_type"] = "sigmoid";
  CHECK_THROWS_AS((void)read(config), Error);
}

TEST_CASE("common attributes at their defaults change no family and no sub-config") {
  const json attributes = common_attributes();
  std::set<std::string> types;
  for (const auto& named : configs_of_all_families()) {
    const std::string& name = named.first;
    const json& config = named.second;
    add_types(config, types);
    const ModelSpec plain = read(config);
    // A layer of headroom's own is no pretrained config.
    if (plain.is_layer()) continue;
    const bool has_encoder = plain.kind == ModelKind::encoder_decoder;
    json filled = config;
    add_to_all(filled, attributes);
    if (has_encoder) filled["is_encoder_decoder"] = true;
    const ModelSpec full = read(filled);
    CHECK_MESSAGE(full.unread_keys == plain.unread_keys, name);
    CHECK_MESSAGE(parameters_of(full) == parameters_of(plain), name);
  }
  for (const ModelTypeInfo& type : list_model_types()) {
    CHECK_MESSAGE(types.contains(type.model_type), type.model_type);
  }
}

TEST_CASE("keys that were seen in published configs and change nothing are ignored") {
  json config = llama();
  for (const char* key : {"tie_weights_", "_num_labels", "for_llm_compressor", "_commit_hash"}) {
    config[key] = 1;
  }
  config["use_mrope"] = false;
  config["use_sliding_window"] = false;
  config["eos_token_ids"] = {1, 2};
  config["forced_decoder_ids"] = {{1, 50259}, {2, 50359}};
  config["n_special"] = 0;
  config["predict_special_tokens"] = true;
  config["is_encoder_decoder"] = false;
  CHECK(read(config).unread_keys.empty());
}

// Keys of published configs: gemma-2-9b, Llama-4-Maverick, opus-mt-en-zh, MiniCPM.
TEST_CASE("keys that one family's published configs have and its class does not read are ignored") {
  const auto unread_with = [](const char* preset, const char* key, const json& value) {
    json config = config_of(*find_preset(preset));
    json& owner = config.contains("text_config") ? config["text_config"] : config;
    owner[key] = value;
    return read(config).unread_keys;
  };
  CHECK(unread_with("gemma-2-9b", "sliding_window_size", 4096).empty());
  CHECK(unread_with("llama-4-scout", "nope_layer_interval", 4).empty());
  CHECK(unread_with("opus-mt-en-de", "do_blenderbot_90_layernorm", false).empty());
  json minicpm = llama();
  minicpm["model_type"] = "minicpm";
  minicpm["architectures"] = {"MiniCPMForCausalLM"};
  minicpm["mup_denominator"] = 32;
  CHECK(read(minicpm).unread_keys.empty());
}

TEST_CASE("a key around a text model's config changes nothing if that config has it too") {
  json config = config_of(*find_preset("qwen3-vl-2b"));
  REQUIRE(config["text_config"].contains("attention_bias"));
  const Integer parameters = parameters_of(read(config));
  config["attention_bias"] = !config["text_config"]["attention_bias"].get<bool>();
  const ModelSpec spec = read(config);
  CHECK(spec.unread_keys.empty());
  CHECK(parameters_of(spec) == parameters);
}

// An earlier config.json of facebook/bart-large.
TEST_CASE("of several architectures the first is counted, and a note says so") {
  json config = config_of(*find_preset("bart-large"));
  config["architectures"] = {"BartModel", "BartForConditionalGeneration",
                             "BartForSequenceClassification"};
  const ModelSpec spec = read(config);
  CHECK(spec.architecture == "BartModel");
  CHECK(std::ranges::any_of(spec.assumptions, [](const std::string& note) {
    return note.find("names 3 classes") != std::string::npos;
  }));
}

TEST_CASE("values that were seen in published configs and change nothing are read") {
  json config = llama();
  config["hidden_act"] = "gelu_fast";
  config["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {16, 24, 24}}};
  CHECK(read(config).unread_keys.empty());
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}, {"attn_factor", 1.0}};
  CHECK(read(config).unread_keys.empty());
  json next = config_of(find_preset("qwen3-next-80b-a3b").value());
  next["use_sliding_window"] = false;
  CHECK(read(next).unread_keys.empty());
  json vision = tower("gemma3");
  vision["vision_config"]["_attn_implementation_autoset"] = true;
  vision["text_config"]["_attn_implementation_autoset"] = true;
  CHECK(read(vision).unread_keys.empty());
}

TEST_CASE("values that a class would read otherwise are refused") {
  const auto refusal = [](const char* config, const char* object, const char* key, json value) {
    json document = read_with_infinity(data_folder() / config);
    (*object == 0 ? document : document[object])[key] = std::move(value);
    return refusal_of([&] { (void)read(document); });
  };
  CHECK(refusal("towers/tiny/phi4_multimodal.config.json", "audio_config", "time_reduction", 6)
            .find("does not halve the sound") != std::string::npos);
  CHECK(refusal("towers/tiny/granite_speech.config.json", "", "downsample_rate", 99)
            .find("larger than window_size") != std::string::npos);
  CHECK(refusal("towers/tiny/blip_2.config.json", "qformer_config", "use_qformer_text_input", true)
            .find("use_qformer_text_input") != std::string::npos);
  CHECK(refusal("towers/tiny/blip_2.config.json", "qformer_config", "encoder_hidden_size", 99)
            .find("has another encoder_hidden_size") != std::string::npos);
  CHECK(refusal("families/cohere2_moe/config.json", "", "shared_expert_combination_strategy", "max")
            .find("\"max\" is not supported") != std::string::npos);
}

TEST_CASE("Aria has queries for images of some sizes, and runs with no others") {
  json config = read_with_infinity(data_folder() / "towers/tiny/aria.config.json");
  CHECK(read(config).tower->projector.queries() == 5);  // of 4 × 4 patches
  CHECK(read(config).not_run.empty());
  config["vision_config"]["image_size"] = 20;
  CHECK(read(config).not_run.find("has no queries") != std::string::npos);
}

// Its gate_lower_bound, as kda_lower_bound of Ling 3.
TEST_CASE("the decays of Kimi K3 have the lower bound that its config states") {
  const ModelSpec spec = read(read_with_infinity(data_folder() / "wild/kimi-k3.config.json"));
  std::int64_t delta_layers = 0;
  for (const LayerVariant& variant : spec.decoder->variants) {
    if (variant.self_attention.kind != AttentionKind::gated_delta) continue;
    ++delta_layers;
    CHECK(variant.self_attention.gated_delta->decay_bound == -5);
  }
  CHECK(delta_layers > 0);
}

TEST_CASE("a type may be written as a module of torch") {
  json config = llama();
  config["torch_dtype"] = "torch.bfloat16";
  CHECK(read(config).torch_dtype == "bfloat16");
}

TEST_CASE(
    "a harmless key is harmless in a sub-config, and an unknown one is named with its place") {
  json config = tower("gemma3");
  config["vision_config"]["favourite_colour"] = "blue";
  CHECK(read(config).unread_keys == std::vector<std::string>{"vision_config/favourite_colour"});
  config["vision_config"]["num_memory_slots"] = 4;
  CHECK(refusal_of([&] { (void)read(config); }).find("/vision_config/num_memory_slots") !=
        std::string::npos);
}

TEST_CASE("sizes that the class fills in are listed") {
  json config = config_of(find_preset("mixtral-8x7b").value());
  CHECK(read(config).assumptions.empty());
  config.erase("num_local_experts");
  config.erase("num_experts_per_tok");
  CHECK(read(config).assumptions ==
        std::vector<std::string>{"the config omits sizes, which are those of MixtralForCausalLM: "
                                 "num_local_experts 8, num_experts_per_tok 2"});
}

// It states attention_head_dim, which later configs call head_dim, and has no experts.
TEST_CASE("the published Nemotron-H omits no size that its layers have") {
  const auto file = data_folder() / "wild/nemotron-h-56b-base-8k.config.json";
  CHECK(load_model(file.string()).spec.assumptions.empty());
}

TEST_CASE("towers without a config are counted with their class's sizes, and a note says so") {
  json config = tower("gemma3");
  const Integer whole = parameters_of(read(config));
  config.erase("vision_config");
  const ModelSpec spec = read(config);
  REQUIRE_FALSE(spec.assumptions.empty());
  CHECK(spec.assumptions.back().find("tower") != std::string::npos);
  CHECK(parameters_of(spec) > whole);
}

TEST_CASE("a key without the name of a size is counted, and named") {
  json config = llama();
  config["favourite_colour"] = "blue";
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"magic", 3}};
  const ModelSpec spec = read(config);
  CHECK(spec.unread_keys == std::vector<std::string>{"rope_scaling/magic", "favourite_colour"});
  CHECK(parameters_of(spec) == 1'100'048'384);
}

TEST_CASE("all structural keys are refused at once, each with its value") {
  json config = llama();
  config["num_memory_slots"] = 4;
  config["adapter_rank"] = 8;
  config["mlp_norm_bias"] = false;
  try {
    (void)read(config);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.message() ==
          "3 keys are unknown and could change a figure: adapter_rank (8), mlp_norm_bias (false), "
          "num_memory_slots (4)");
  }
}

TEST_CASE("non-finite numbers are read as Python writes them") {
  json config = llama();
  std::string text = config.dump();
  text.insert(1, R"("time_limits": [0.0, Infinity, -Infinity, NaN], "quote": "NaN \" Infinity", )");
  CHECK_NOTHROW((void)read_model_spec(text, "config.json", "test"));
}
