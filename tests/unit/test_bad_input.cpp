// Bad model descriptions: each is an error with file and JSON pointer, never a crash, an overflow
// or a silent default.
#include <doctest/doctest.h>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/model_source.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const nlohmann::json kLlama = {{"model_type", "llama"},    {"hidden_size", 64},
                               {"intermediate_size", 96},  {"num_hidden_layers", 2},
                               {"num_attention_heads", 8}, {"vocab_size", 101}};

nlohmann::json with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = kLlama;
  config[key] = value;
  return config;
}

/// The place of the error that `text` gives as a config; fails the test if it is accepted.
std::string text_error(const std::string& text) {
  try {
    (void)read_model_spec(text, "config.json", "test");
  } catch (const Error& error) {
    CHECK(exit_status(error.code()) == 2);
    CHECK_FALSE(error.message().empty());
    CHECK_FALSE(error.hint().empty());
    return error.where();
  }
  FAIL("accepted: " << text.substr(0, 200));
  return {};
}

std::string error_place(const nlohmann::json& config) { return text_error(config.dump()); }

}  // namespace

TEST_CASE("positions whose sum with unused rows does not fit 64 bits are refused") {
  const nlohmann::json bart = {{"model_type", "bart"},
                               {"d_model", 64},
                               {"encoder_layers", 1},
                               {"decoder_layers", 1},
                               {"encoder_attention_heads", 4},
                               {"decoder_attention_heads", 4},
                               {"encoder_ffn_dim", 96},
                               {"decoder_ffn_dim", 96},
                               {"vocab_size", 101},
                               {"max_position_embeddings", INT64_MAX}};
  CHECK(error_place(bart) == "config.json#/max_position_embeddings");
  const nlohmann::json opt = {{"model_type", "opt"},
                              {"hidden_size", 64},
                              {"num_hidden_layers", 1},
                              {"ffn_dim", 96},
                              {"num_attention_heads", 4},
                              {"vocab_size", 101},
                              {"max_position_embeddings", INT64_MAX}};
  CHECK(error_place(opt) == "config.json#/max_position_embeddings");
  nlohmann::json config = kLlama;
  config["model_type"] = "roberta";
  config["pad_token_id"] = INT64_MAX;
  CHECK(error_place(config) == "config.json#/pad_token_id");
}

TEST_CASE("text that is not JSON is refused with the file's name") {
  for (const char* const text :
       {"", "{", "nonsense", "[1, 2", "{\"a\": }", "{\"a\": 1} x", "{\"a\\"}) {
    CAPTURE(text);
    CHECK(text_error(text) == "config.json");
  }
}

TEST_CASE("a zero byte does not end the text") {
  CHECK(text_error(kLlama.dump() + std::string(1, '\0') + "garbage") == "config.json");
}

TEST_CASE("text that is not UTF-8 is refused") {
  CHECK(text_error("{\"model_type\": \"\xff\xfe\"}") == "config.json");
  CHECK(text_error("\xff\xfe{}") == "config.json");
}

TEST_CASE("ten megabytes of brackets are refused, not recursed into") {
  CHECK(text_error(std::string(10'000'000, '[')) == "config.json");
  CHECK(text_error("{\"a\":" + std::string(10'000'000, '[')) == "config.json");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(text_error(objects) == "config.json");
}

TEST_CASE("a config that is not an object is refused") {
  for (const char* const text : {"[]", "3", "\"llama\"", "null", "true"}) {
    CAPTURE(text);
    CHECK(text_error(text) == "config.json");
  }
}

TEST_CASE("a repeated key is refused") {
  CHECK(text_error(R"({"model_type": "llama", "hidden_size": 64, "hidden_size": 128})") ==
        "config.json");
}

TEST_CASE("an unknown model type is refused") {
  CHECK(error_place(with("model_type", "llama5")) == "config.json#/model_type");
  CHECK(error_place(with("model_type", nullptr)) == "config.json#/model_type");
  CHECK(error_place(with("model_type", 3)) == "config.json#/model_type");
}

TEST_CASE("an unknown key whose name says size or operator is refused") {
  CHECK(error_place(with("sliding_window", 4096)) == "config.json#/sliding_window");
  CHECK(error_place(with("num_experts", 8)) == "config.json#/num_experts");
  CHECK(error_place(with("num_a/b~c", 8)) == "config.json#/num_a~1b~0c");
  CHECK(error_place(with("quantization_config", 4)) == "config.json#/quantization_config");
  CHECK(error_place(with("is_decoder", true)) == "config.json#/is_decoder");
  CHECK(error_place(with("rope_scaling", {{"rope_type", "ntk-by-parts"}, {"factor", 4.0}})) ==
        "config.json#/rope_scaling/rope_type");
  CHECK(error_place(with("rope_scaling", {{"rope_type", "linear"}, {"magic_size", 4.0}})) ==
        "config.json#/rope_scaling/magic_size");
}

TEST_CASE("an unknown architecture class is refused") {
  CHECK(error_place(with("architectures", {"LlamaForEverything"})) == "config.json#/architectures");
  CHECK(error_place(with("architectures", "LlamaForCausalLM")) == "config.json#/architectures");
  CHECK(error_place(with("architectures", {1})) == "config.json#/architectures");
}

TEST_CASE("a size of the wrong type or range is refused") {
  for (const nlohmann::json& value :
       {nlohmann::json("64"), nlohmann::json(64.5), nlohmann::json(true), nlohmann::json(0),
        nlohmann::json(-64), nlohmann::json::array(), nlohmann::json(18446744073709551615ULL)}) {
    CAPTURE(value.dump());
    CHECK(error_place(with("hidden_size", value)) == "config.json#/hidden_size");
  }
  CHECK(text_error(R"({"model_type": "llama", "hidden_size": 99999999999999999999999})") ==
        "config.json#/hidden_size");
  CHECK(text_error(R"({"model_type": "llama", "hidden_size": 1e999})") == "config.json");
  nlohmann::json missing = kLlama;
  missing["model_type"] = "xverse";  // transformers has no class for it, so no default sizes
  missing.erase("hidden_size");
  CHECK(error_place(missing) == "config.json#/hidden_size");
}

TEST_CASE("flags, texts and probabilities of the wrong type are refused") {
  CHECK(error_place(with("tie_word_embeddings", 1)) == "config.json#/tie_word_embeddings");
  CHECK(error_place(with("hidden_act", 1)) == "config.json#/hidden_act");
  CHECK(error_place(with("hidden_act", "magic")) == "config.json#/hidden_act");
  CHECK(error_place(with("attention_dropout", 1.5)) == "config.json#/attention_dropout");
  CHECK(error_place(with("attention_dropout", "no")) == "config.json#/attention_dropout");
  CHECK(error_place(with("rope_scaling", 3)) == "config.json#/rope_scaling");
}

TEST_CASE("heads that do not divide are refused") {
  CHECK(error_place(with("num_attention_heads", 7)) == "config.json#/num_attention_heads");
  CHECK(error_place(with("num_key_value_heads", 3)) == "config.json#/num_key_value_heads");
  CHECK(error_place(with("num_key_value_heads", 16)) == "config.json#/num_key_value_heads");
  // An explicit head_dim needs no divisibility.
  nlohmann::json config = with("num_attention_heads", 7);
  config["head_dim"] = 16;
  CHECK(spec_of(config).decoder->self_attention.head_dim == 16);
}

TEST_CASE("settings that single layers do not support are refused") {
  const auto place = [](nlohmann::json config, const char* key, const nlohmann::json& value) {
    config["hidden_size"] = 8;
    config[key] = value;
    return error_place(config);
  };
  const nlohmann::json lstm{{"model_type", "lstm"}};
  CHECK(place(lstm, "bidirectional", true) == "config.json#/bidirectional");
  CHECK(place(lstm, "proj_size", 4) == "config.json#/proj_size");
  CHECK(place(lstm, "input_size", 4) == "config.json#/input_size");
  CHECK(place(lstm, "dropout", 0.5) == "config.json#/dropout");
  CHECK(place({{"model_type", "rnn"}}, "nonlinearity", "relu") == "config.json#/nonlinearity");
  const nlohmann::json convolution{{"model_type", "convolution"}, {"kernel_size", 3}};
  CHECK(place(convolution, "groups", 2) == "config.json#/groups");
  CHECK(place(convolution, "stride", 2) == "config.json#/stride");
  CHECK(place(convolution, "kernel_size", 0) == "config.json#/kernel_size");
  CHECK(place(convolution, "dilation", std::int64_t{1} << 40U) == "config.json#/kernel_size");
  CHECK(place(convolution, "num_layers", 1'000'000) == "config.json#/num_layers");
  const nlohmann::json linear{{"model_type", "attention"},
                              {"num_attention_heads", 2},
                              {"head_dim", 4},
                              {"attention_kind", "linear"}};
  CHECK(place(linear, "sliding_window", 4) == "config.json#/sliding_window");
  CHECK(place(linear, "attention_scale", "none") == "config.json#/attention_scale");
  CHECK(place(linear, "feature_map", "favor") == "config.json#/feature_map");
  nlohmann::json softmax = linear;
  softmax["attention_kind"] = "softmax";
  CHECK(place(softmax, "feature_map", "relu") == "config.json#/feature_map");
  CHECK(place(softmax, "attention_scale", "d_k") == "config.json#/attention_scale");
  softmax["num_hidden_layers"] = 2;
  softmax["value_head_dim"] = 5;
  CHECK(place(softmax, "output_projection", false) == "config.json#/output_projection");
}

TEST_CASE("every family refuses an absurd number of layers before it allocates them") {
  const std::vector<std::string> keys{"num_hidden_layers",  "num_layers",        "n_layer",
                                      "n_layers",           "encoder_layers",    "decoder_layers",
                                      "num_encoder_layers", "num_decoder_layers"};
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.name);
    const auto config = nlohmann::json::parse(preset.json).at("config");
    for (const std::string& key : keys) {
      // BART repeats encoder_layers under this key, which nothing reads.
      const bool is_read = config.contains(key) &&
                           !(key == "num_hidden_layers" && config.contains("encoder_layers"));
      if (!is_read) continue;
      nlohmann::json absurd = config;
      absurd[key] = std::int64_t{60'000'000'000};
      CHECK(error_place(absurd).starts_with("config.json#/"));
    }
  }
}

TEST_CASE("two spellings of one setting must agree") {
  nlohmann::json config = {{"model_type", "gpt2"}, {"n_embd", 64}, {"hidden_size", 128},
                           {"n_layer", 2},         {"n_head", 4},  {"vocab_size", 101}};
  CHECK(error_place(config) == "config.json#/hidden_size");
  config["hidden_size"] = 64;
  CHECK(spec_of(config).hidden_size == 64);
}

TEST_CASE("sizes with a product above 2^127 are an overflow error") {
  nlohmann::json config = kLlama;
  for (const char* const key : {"hidden_size", "intermediate_size", "vocab_size"}) {
    config[key] = std::int64_t{1} << 56U;
  }
  const ModelSpec spec = spec_of(config);
  Workload workload;
  workload.batch_size = std::int64_t{1} << 56U;
  try {
    (void)count(spec, workload);
    FAIL("no overflow");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::overflow);
  }
}

TEST_CASE("every prefix of a real config is either a spec or an error") {
  const std::string text = kLlama.dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    CHECK_THROWS_AS((void)read_model_spec(text.substr(0, length), "config.json", "test"), Error);
  }
}

TEST_CASE("an unknown model name gets the closest preset as a hint") {
  try {
    (void)load_model("bert-bsae");
    FAIL("found");
  } catch (const Error& error) {
    CHECK(error.where() == "bert-bsae");
    CHECK(error.hint().find("bert-base") != std::string::npos);
  }
  CHECK_THROWS_AS((void)load_model("/nonexistent/config.json"), Error);
  CHECK_THROWS_AS((void)load_model(""), Error);
  CHECK_THROWS_AS((void)load_model("/"), Error);
}

TEST_CASE("a path that does not exist lacks a file, and a name that nothing has is a mistake") {
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  const auto of_model = [&](const char* name) { return code_of([&] { (void)load_model(name); }); };
  const auto of_machine = [&](const char* name) {
    return code_of([&] { (void)find_machine(name); });
  };
  for (const char* path : {"./absent", "../absent", "/absent", "~/absent", "absent/", "absent.json",
                           "absent.gguf", "absent/model.safetensors"}) {
    CAPTURE(path);
    CHECK(of_model(path) == ErrorCode::missing_resource);
    CHECK(of_machine(path) == ErrorCode::missing_resource);
  }
  for (const char* name : {"absent", "owner/absent", "hf.co/owner/absent", ""}) {
    CAPTURE(name);
    CHECK(of_model(name) == ErrorCode::invalid_input);
    CHECK(of_machine(name) == ErrorCode::invalid_input);
  }
}

TEST_CASE("a short pattern of many layers is refused before it is written out") {
  const nlohmann::json words(1000, "global");
  const nlohmann::json pattern = {words, 100000};
  nlohmann::json config = {{"model_type", "gpt_neo"}, {"hidden_size", 64},
                           {"num_heads", 4},          {"num_layers", 2},
                           {"vocab_size", 100},       {"max_position_embeddings", 64}};
  config["attention_types"] = {pattern};
  CHECK(error_place(config) == "config.json#/attention_types");
  config["attention_types"] = nlohmann::json(100, nlohmann::json{{"global"}, 2000});
  CHECK(error_place(config) == "config.json#/attention_types");
}

TEST_CASE("a text of more values than any model description is refused") {
  std::string text = "[0";
  for (int i = 0; i < 16'000'001; ++i) text += ",0";
  CHECK(text_error(text + "]") == "config.json");
}

TEST_CASE("layers that share keys need a layer before them that has some, of the same window") {
  auto config = read_json(data_folder() / "towers/tiny/gemma3n_text.config.json");
  config["layer_types"] = {"sliding_attention", "sliding_attention", "full_attention",
                           "sliding_attention", "full_attention"};
  config["num_kv_shared_layers"] = 3;  // the first full layer would be one of them
  CHECK(error_place(config) == "config.json");
  config["num_kv_shared_layers"] = 2;
  CHECK_NOTHROW((void)spec_of(config));
  config["sliding_window"] = nullptr;  // sliding layers would share the keys of full ones
  CHECK(error_place(config) == "config.json#/sliding_window");
}

TEST_CASE("a token uses no more experts than there are, in every family") {
  for (const char* const name : {"hunyuan_v1_moe", "ernie4_5_moe"}) {
    auto config =
        read_json(data_folder() / "golden/tiny" / (std::string(name) + ".json"))["config"];
    config["moe_topk"] = config["moe_k"] = 99;
    CHECK(error_place(config) == "config.json");
  }
}

TEST_CASE("RoPE and limits by layer that do not fit the layers are refused at their key") {
  const auto place_of = [](const char* folder, const char* key, const char* value) {
    auto config = read_json(data_folder() / "families" / folder / "config.json");
    config[key] = nlohmann::json::parse(value);
    return error_place(config);
  };
  for (const char* const thetas : {"[0, 10000]", "[0, -1, 10000, 10000]"}) {
    CHECK(place_of("granite_swa", "layer_rope_theta", thetas) == "config.json#/layer_rope_theta");
  }
  for (const char* const limits : {"[0, 7.5]", "[0, 0, -7.5, 0]"}) {
    CHECK(place_of("step3p5", "swiglu_limits", limits) == "config.json#/swiglu_limits");
  }
  CHECK(place_of("gte_ntk", "rope_scaling", R"({"type": "ntk", "factor": 8, "mixed_b": 0.6})") ==
        "config.json#/rope_scaling");
  CHECK(place_of("nanochat", "rope_parameters", R"({"rope_type": "yarn", "factor": 8})") ==
        "config.json#/rope_parameters");
}

TEST_CASE("a number of positions or tokens that fills no square is refused at its key") {
  const auto place_of = [](const char* file, const char* pointer) {
    auto config = read_json(data_folder() / file);
    const nlohmann::json::json_pointer key(pointer);
    CHECK_NOTHROW((void)spec_of(config));
    config[key] = (std::int64_t{1} << 56) - 1;
    return error_place(config);
  };
  CHECK(place_of("towers/tiny/qwen3_vl.config.json", "/vision_config/num_position_embeddings") ==
        "config.json#/vision_config/num_position_embeddings");
  CHECK(place_of("towers/tiny/gemma3.config.json", "/mm_tokens_per_image") ==
        "config.json#/mm_tokens_per_image");
  CHECK(place_of("golden/models/siglip2_shapes/config.json", "/vision_config/num_patches") ==
        "config.json#/vision_config/num_patches");
}

TEST_CASE("RecurrentGemma has no scaling of RoPE") {
  auto config = read_json(data_folder() / "state_spaces/configs/recurrent_gemma.json");
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  CHECK(error_place(config).starts_with("config.json#/rope_scaling"));
}

// Random changes to configs gave outputs of NaN: frequencies are powers of the base, YaRN's ramp
// lies between logarithms, norms and scores have roots, and temperature tuning a logarithm.
TEST_CASE("numbers whose powers, roots or logarithms are none are refused in every family") {
  const auto tiny = [](const std::string& name) {
    return read_json(data_folder() / "golden/tiny" / (name + ".json")).at("config");
  };
  const auto place_with = [](nlohmann::json config, const char* key, const nlohmann::json& value) {
    config[key] = value;
    return error_place(config);
  };
  for (const double base : {0.0, -0.25, -1.0, 1e-300}) {
    CHECK(place_with(tiny("mixtral"), "rope_theta", base) == "config.json");
  }
  for (const auto& [kind, factor] : {std::pair{"linear", 1e-300}, std::pair{"dynamic", -2.0}}) {
    const nlohmann::json scaling = {{"type", kind}, {"factor", factor}};
    CHECK(place_with(tiny("mixtral"), "rope_scaling", scaling) == "config.json");
  }
  nlohmann::json yarn = tiny("gpt_oss").at("rope_scaling");
  yarn["beta_fast"] = 0;
  CHECK(place_with(tiny("gpt_oss"), "rope_scaling", yarn) == "config.json");
  CHECK(place_with(tiny("gpt_oss"), "rope_theta", 1) == "config.json");
  CHECK(place_with(tiny("gemma2"), "rms_norm_eps", -1) == "config.json");
  CHECK(place_with(tiny("gemma2"), "query_pre_attn_scalar", -0.25) == "config.json");
  for (const double cap : {1e300, 1e-300}) {
    CHECK(place_with(tiny("gemma2"), "final_logit_softcapping", cap) == "config.json");
    CHECK(place_with(tiny("gemma2"), "attn_logit_softcapping", cap) == "config.json");
  }
  const auto lfm2 = read_json(data_folder() / "state_spaces/configs/lfm2.json");
  // LFM2's inner width had no column left, and a run ended with SIGSEGV.
  CHECK(place_with(lfm2, "block_ffn_dim_multiplier", 1e-300) ==
        "config.json#/block_ffn_dim_multiplier");
  // DeBERTa's table of positions had no row, and a run read before it.
  for (const double buckets : {0.1, 1.0, 1000.0}) {
    CHECK(place_with(tiny("deberta_v2"), "position_buckets", buckets) ==
          "config.json#/position_buckets");
  }
  CHECK(place_with(tiny("llama4_text"), "floor_scale", -0.25) == "config.json#/floor_scale");
  // Gemma 4's full layers have a RoPE of their own.
  nlohmann::json gemma = read_json(data_folder() / "golden/models/gemma4_text/config.json");
  gemma["rope_parameters"]["full_attention"]["rope_theta"] = 0;
  CHECK(error_place(gemma) == "config.json");
}

TEST_CASE("heads share key-value heads equally, and RoPE rotates at most a head, in every family") {
  auto zamba = read_json(data_folder() / "state_spaces/configs/zamba2.json");
  zamba["num_key_value_heads"] = 6;  // of 4
  CHECK(error_place(zamba) == "config.json");
  // Without rotary_dim, GPT-J's class rotates 64 dimensions.
  CHECK(error_place({{"model_type", "gptj"},
                     {"n_embd", 24},
                     {"n_head", 3},
                     {"n_layer", 2},
                     {"n_positions", 64},
                     {"vocab_size", 53}}) == "config.json");
  // Full layers have a RoPE of their own.
  auto gemma = read_json(data_folder() / "golden/models/gemma4_text/config.json");
  gemma["global_head_dim"] = 16;
  for (const double factor : {0.35, 2.0}) {  // 5 and 32 of 16 dimensions
    gemma["rope_parameters"]["full_attention"] = {{"rope_type", "default"},
                                                  {"partial_rotary_factor", factor}};
    CHECK(error_place(gemma) == "config.json");
  }
}
