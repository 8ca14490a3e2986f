// Keys of quantisations that few published configs have: bytes of the tensors that each library
// writes, the types that a method states, and what is refused. Sources: those of
// test_quantization_configs.cpp and test_quantization_schemes.cpp.
#include <doctest/doctest.h>

#include <fstream>

#include "quantization/group_format.h"
#include "stored_query.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

constexpr std::int64_t kGroupsOf64 = kQueryValues / 64;
constexpr std::int64_t kWords = 151936 * 1024;

/// The format of the query matrices of layer 0 by the first rule for all matrices of layers.
StorageFormat format_by(const json& quantization) {
  const ModelSpec spec = qwen_with(quantization);
  for (const StorageRule& rule : spec.storage.rules) {
    if (rule.format && rule.format->name != "F32") return *rule.format;
  }
  FAIL("no format");
  return {};
}

Integer bytes_by(const json& quantization) {
  return format_by(quantization).bytes(kQueryRows, kQueryColumns);
}

std::string refusal_by(const json& quantization) {
  return refusal_of([&] { (void)qwen_with(quantization); });
}

json torchao(const json& type) { return {{"quant_method", "torchao"}, {"quant_type", type}}; }

json hqq(const json& params) {
  return {{"quant_method", "hqq"}, {"quant_config", {{"weight_quant_params", params}}}};
}

json compressed_groups(const json& groups) {
  return {{"quant_method", "compressed-tensors"}, {"config_groups", groups}};
}

}  // namespace

TEST_CASE("compressed-tensors reads a name with a capital and a dot as that of a module") {
  const json int8{{"num_bits", 8}, {"type", "int"}};
  const auto bytes = [&](const char* target) {
    return qwen_bytes(compressed_groups({{"group_0", {{"targets", {target}}, {"weights", int8}}}}));
  };
  const Integer plain = qwen_bytes(nullptr);
  CHECK(bytes("Model.layers.0.self_attn.q_proj") == plain);
  CHECK(bytes("") == plain);
  CHECK(bytes("model.layers.0.self_attn.q_proj") == plain - kPlainQuery + kQueryValues + 2);
}

TEST_CASE("the first group of compressed-tensors that quantises inputs states their type") {
  const json fp8{{"num_bits", 8}, {"type", "float"}, {"dynamic", true}};
  const json int4{{"num_bits", 4}, {"type", "int"}, {"dynamic", true}};
  const auto group = [](const char* target, const json& inputs) {
    return json{{"targets", {target}},
                {"weights", {{"num_bits", 8}, {"type", "int"}}},
                {"input_activations", inputs}};
  };
  const auto stated = [&](const json& first, const json& second) {
    return qwen_with(compressed_groups({{"group_0", group("re:.*q_proj", first)},
                                        {"group_1", group("re:.*k_proj", second)}}))
        .storage.activations;
  };
  CHECK(stated(fp8, int4) == StatedType::float8);
  CHECK(stated(int4, fp8) == StatedType::int4);
  json six = int4;
  six["num_bits"] = 6;
  CHECK(refusal_by(compressed_groups({{"group_0", group("Linear", six)}}))
            .find("group_0/input_activations/num_bits: values of type \"int\" with 6 bits are not "
                  "supported") != std::string::npos);
}

TEST_CASE("FP8 in blocks stores the scale of inputs that are quantised statically") {
  const json blocks{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  json static_inputs = blocks;
  static_inputs["activation_scheme"] = "static";
  constexpr Integer kBlocks = Integer{kQueryRows / 128} * (kQueryColumns / 128);
  CHECK(bytes_by(blocks) == kQueryValues + 4 * kBlocks);
  CHECK(bytes_by(static_inputs) == kQueryValues + 4 * kBlocks + 4);
}

TEST_CASE("DeepSeek-V4's scales are exponents for blocks, and numbers for single columns") {
  const auto format = [](std::int64_t in) {
    json config = read_json(data_folder() / "families/deepseek_v4/config.json");
    config["quantization_config"] = {
        {"quant_method", "fp8"}, {"scale_fmt", "ue8m0"}, {"weight_block_size", {128, in}}};
    const ModelSpec spec = spec_of(config);
    for (const StorageRule& rule : spec.storage.rules) {
      if (rule.format && rule.format->name.starts_with("FP8")) return *rule.format;
    }
    return StorageFormat{};
  };
  CHECK(format(128).bytes(256, 512) == 256 * 512 + 2 * 4);
  CHECK(format(1).bytes(256, 512) == 256 * 512 + 4 * 2 * 512);
}

TEST_CASE("DeepSeek-V4's experts have the type of expert_dtype under any key of a quantisation") {
  json config = read_json(data_folder() / "families/deepseek_v4/config.json");
  const json fp8{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  const auto bytes = [&](const char* key, const char* type) {
    json quantised = config;
    quantised[key] = fp8;
    quantised["expert_dtype"] = type;
    const ModelSpec spec = spec_of(quantised);
    return stored_weights(spec, build_graph(spec, {})).bytes;
  };
  // 4 layers of 6 experts with matrices of 12 · 24: half a byte a value, and an exponent for the 24
  // or 12 inputs of a row, against a byte and a float32 for each matrix.
  constexpr Integer kSaved = 4 * 6 * (3 * (12 * 24 / 2 + 4) - 2 * 12 - 24);
  for (const char* const key : {"quantization_config", "compression_config"}) {
    CAPTURE(key);
    CHECK(bytes(key, "fp8") - bytes(key, "fp4") == kSaved);
  }
}

TEST_CASE("MLX writes OCP's and NVIDIA's formats, without a scale of a whole tensor") {
  const auto bytes = [](const char* mode) {
    return bytes_by({{"bits", 4}, {"group_size", 32}, {"mode", mode}});
  };
  CHECK(bytes("mxfp4") == kQueryValues / 2 + kQueryValues / 32);
  CHECK(bytes("mxfp8") == kQueryValues + kQueryValues / 32);
  CHECK(bytes("nvfp4") == kQueryValues / 2 + kQueryValues / 16);
}

TEST_CASE("torchao's type may stand at the top, with its group in _data") {
  const Integer in_groups = kQueryValues / 2 + 4 * kGroupsOf64;
  CHECK(bytes_by(torchao({{"_type", "Int4WeightOnlyConfig"}, {"_data", {{"group_size", 64}}}})) ==
        in_groups);
  CHECK(bytes_by(torchao(
            {{"default", {{"_type", "Int4WeightOnlyConfig"}, {"_data", {{"group_size", 64}}}}}})) ==
        in_groups);
  const ModelSpec unknown = qwen_with(torchao(5));
  CHECK_FALSE(unknown.storage.bytes_known);
  CHECK(unknown.storage.notes.size() == 1);
}

TEST_CASE("names with characters of expressions are expressions") {
  const auto bytes = [](const char* kept) {
    return qwen_bytes({{"quant_method", "fp8"}, {"modules_to_not_convert", {kept}}});
  };
  constexpr std::int64_t kSaved = kQueryValues - 4;  // one byte a value, and a float32
  CHECK(bytes(R"(model\.layers\.[0-4]\..*q_proj)") - bytes("none") == 5 * Integer{kSaved});
  CHECK(bytes("^model.layers.7.self_attn.q_proj$") - bytes("none") == kSaved);
}

TEST_CASE("auto-round's expression may begin at the beginning of a name") {
  const auto bytes = [](const char* key) {
    return qwen_bytes(
        {{"quant_method", "auto-round"}, {"bits", 4}, {"extra_config", {{key, {{"bits", 16}}}}}});
  };
  CHECK(bytes("^model.layers.[0-4]\\..*q_proj") == bytes("layers.[0-4]\\..*q_proj"));
  CHECK(bytes("^self_attn.q_proj") == bytes("nothing"));
}

TEST_CASE("GPTQ quantises the head with lm_head, and counts all matrices of a layer") {
  json config{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}};
  const ModelSpec all = qwen_with(config);
  config["modules_in_block_to_quantize"] = json::array({json::array({"self_attn.q_proj"})});
  const ModelSpec some = qwen_with(config);
  REQUIRE(some.storage.notes.size() == all.storage.notes.size() + 1);
  CHECK(some.storage.notes.back().find("modules_in_block_to_quantize") != std::string::npos);

  json untied = json::parse(find_preset("qwen3-0.6b")->json).at("config");
  untied.update({{"tie_word_embeddings", false}, {"torch_dtype", "float16"}});
  const auto bytes = [&](bool with_head) {
    untied["quantization_config"] = {
        {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"lm_head", with_head}};
    const ModelSpec spec = spec_of(untied);
    return stored_weights(spec, build_graph(spec, {})).bytes;
  };
  // Scales of 16 bits and zero points of 4 for 8 groups of 128 inputs, and the group of each input.
  const Integer packed =
      Integer{kWords} / 2 + Integer{8} * 151936 * 2 + Integer{8} * 151936 / 2 + 1024 * 4;
  CHECK(bytes(false) - bytes(true) == 2 * Integer{kWords} - packed);
}

TEST_CASE("HQQ packs ten values of 3 bits into a word, and skips the modules of its list") {
  CHECK(bytes_by(hqq({{"nbits", 4}, {"group_size", 64}})) == kQueryValues / 2 + 4 * kGroupsOf64);
  CHECK(bytes_by(hqq({{"nbits", 3}, {"group_size", 64}})) ==
        (kQueryValues + 9) / 10 * 4 + 4 * kGroupsOf64);
  CHECK(bytes_by(hqq({{"nbits", 4}, {"group_size", 0}})) ==
        kQueryValues / 2 + 4 * Integer{kQueryRows});
  json skipping = hqq({{"nbits", 4}, {"group_size", 64}});
  const Integer all = qwen_bytes(skipping);
  skipping["skip_modules"] = {"q_proj"};
  CHECK(qwen_bytes(skipping) - all ==
        kQueryLayers * (kPlainQuery - kQueryValues / 2 - 4 * kGroupsOf64));
  for (const json& unknown : {json{{"quant_method", "hqq"}},
                              json{{"quant_method", "hqq"}, {"quant_config", {{"q_proj", 1}}}}}) {
    CHECK_FALSE(qwen_with(unknown).storage.bytes_known);
    CHECK(qwen_with(unknown).storage.notes.back().find("other bits per module") !=
          std::string::npos);
  }
}

TEST_CASE("a quantisation without a method is told by its keys") {
  const ModelSpec eight = qwen_with({{"load_in_8bit", true}});
  CHECK(eight.quantization == "bitsandbytes");
  CHECK(eight.storage.activations == StatedType::int8);
  const ModelSpec modelopt =
      qwen_with({{"quantization", {{"quant_algo", "FP8"}, {"kv_cache_quant_algo", "INT8"}}}});
  CHECK(modelopt.quantization == "modelopt");
  CHECK(modelopt.storage.kv_cache == StatedType::int8);
}

TEST_CASE("a word in place of a quantisation is a note, under MLX's key") {
  json config = json::parse(find_preset("qwen3-0.6b")->json).at("config");
  const auto bytes = [](const ModelSpec& spec) {
    return stored_weights(spec, build_graph(spec, {})).bytes;
  };
  const Integer plain = bytes(spec_of(config));
  config["quantization"] = "4bit";
  const ModelSpec noted = spec_of(config);
  CHECK(bytes(noted) == plain);
  REQUIRE(noted.storage.notes.size() == 1);
  CHECK(noted.storage.notes.front() ==
        "quantization is not an object; weights are counted in the unquantised type");
}

TEST_CASE("hf_quant_config.json adds what a quantised config does not state") {
  const ScratchFolder folder;
  json config = json::parse(find_preset("qwen3-0.6b")->json).at("config");
  config["quantization_config"] = {{"quant_method", "fp8"}};
  folder.write("config.json", config.dump());
  folder.write("hf_quant_config.json",
               R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})");
  const auto storage = [&] { return load_model(folder.path().string()).spec.storage; };
  CHECK(storage().kv_cache == StatedType::float8);
  CHECK(storage().activations == StatedType::float8);
  config["quantization_config"] = {
      {"quant_method", "quark"},
      {"kv_cache_quant_config", {{"*k_proj", {{"output_tensors", {{"dtype", "int8"}}}}}}}};
  folder.write("config.json", config.dump());
  CHECK(storage().kv_cache == StatedType::int8);
}

TEST_CASE("Quark's entries that are no objects state nothing") {
  const json fp8{{"dtype", "fp8_e4m3"}, {"qscheme", "per_tensor"}};
  const auto quark = [](const json& keys) {
    json config = keys;
    config["quant_method"] = "quark";
    return config;
  };
  const Integer all = qwen_bytes(quark({{"layer_quant_config", {{"*q_proj", {{"weight", fp8}}}}}}));
  CHECK(qwen_bytes(quark({{"layer_quant_config",
                           {{"*q_proj", {{"weight", fp8}}}, {"*k_proj", "none"}}}})) == all);
  const auto cache = [&](const json& keys) {
    return qwen_with(quark({{"kv_cache_quant_config", keys}})).storage.kv_cache;
  };
  CHECK_FALSE(cache({{"*k_proj", "none"}, {"*q_proj", {{"weight", fp8}}}}));
  CHECK(cache({{"*a", 1}, {"*k_proj", {{"output_tensors", fp8}}}}) == StatedType::float8);
}

TEST_CASE("a word may state the type of the KV-cache") {
  const auto cache = [](const char* word) {
    json config = compressed_groups(json::object());
    config["kv_cache_scheme"] = word;
    return qwen_with(config).storage.kv_cache;
  };
  CHECK(cache("FP8") == StatedType::float8);
  CHECK(cache("NVFP4") == StatedType::nvfp4);
  CHECK_FALSE(cache("none"));
}

TEST_CASE("each type that a method states for inputs has its name") {
  const auto name = [](const json& type) {
    const ModelSpec spec =
        qwen_with({{"quant_method", "quark"},
                   {"global_quant_config", {{"input_tensors", {{"dtype", type}}}}}});
    return spec.storage.activations ? std::string(name_of(*spec.storage.activations)) : "";
  };
  CHECK(name("fp8_e4m3") == "float8");
  CHECK(name("uint8") == "int8");
  CHECK(name("int4") == "int4");
  CHECK(name("fp4") == "float4");
  CHECK(name("mxfp4") == "mxfp4");
  CHECK(name("bfloat16").empty());
}

TEST_CASE("a matrix without rows or columns has no bytes, whatever its scales") {
  const StorageFormat format = format_by({{"quant_method", "fp8"}});
  CHECK(format.bytes(0, 64) == 0);
  CHECK(format.bytes(64, 0) == 0);
  CHECK(format.bytes(1, 1) == 1 + 4);
}

TEST_CASE("kernels run codes in groups whose words are full, with zero points of their own") {
  const auto form = [](const json& quantization) {
    return detail::group_format_of(format_by(quantization));
  };
  const auto int4 = [](std::int64_t group) {
    return compressed_groups(
        {{"group_0",
          {{"targets", {"Linear"}},
           {"format", "pack-quantized"},
           {"weights", {{"num_bits", 4}, {"type", "int"}, {"group_size", group}}}}}});
  };
  CHECK(form(int4(32)).has_value());
  CHECK_FALSE(form(int4(12)).has_value());
  // The scale of static inputs beside that of the weights is no zero point.
  const auto static_inputs =
      form({{"quant_method", "quark"},
            {"global_quant_config",
             {{"weight", {{"dtype", "fp8_e4m3"}}}, {"input_tensors", {{"dtype", "fp8_e4m3"}}}}}});
  REQUIRE(static_inputs.has_value());
  CHECK_FALSE(static_inputs->has_zeros);
  CHECK(name_of(*static_inputs) == "fp8-tensor-s32");
  for (const char* const name :
       {"4bit-1x12a-s16", "4bit-1xa-s16", "4bit-1x12-s16", "4bit-1x0-s16"}) {
    CAPTURE(name);
    CHECK_FALSE(group_format_named(name).has_value());
  }
  CHECK(group_format_named("4bit-1x16-s16").has_value());
}

TEST_CASE("only scales of blocks along a row are nested") {
  for (const char* const name :
       {"4bit-row-nested", "4bit-tensor-nested", "int8-row-nested", "4bit-64x64-nested"}) {
    CAPTURE(name);
    CHECK_FALSE(group_format_named(name).has_value());
  }
  const auto nested = group_format_named("4bit-1x64-nested");
  REQUIRE(nested.has_value());
  CHECK(detail::group_format_of(detail::storage_format(*nested)) == nested);
}

TEST_CASE("formats without scales, or with scales of 16-bit numbers, are none of the kernels'") {
  const StoredNumbers scale{.bits = 16, .block = {1, 64}};
  CHECK_FALSE(detail::group_format_of({"codes", {.bits = 8}, {}, GroupCodes::int8}).has_value());
  CHECK_FALSE(
      detail::group_format_of({"half", {.bits = 16}, {scale}, GroupCodes::float16}).has_value());
}

TEST_CASE("random weights run in groups of codes, but not as plain numbers of 16 bits") {
  const auto runs = [](const char* name) {
    ModelSpec spec = qwen_with(nullptr);
    spec.storage.rules.push_back(
        {.format = detail::storage_format(group_format_named(name).value()),
         .kinds = {ModuleKind::linear}});
    return detail::runs_in_groups(spec);
  };
  CHECK(runs("int8-row-s16"));
  CHECK_FALSE(runs("f16"));
  CHECK_FALSE(runs("bf16"));
}
