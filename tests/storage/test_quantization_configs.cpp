// Every published quantisation: its formats, what it excludes, its types of activations and cache.
// The configs are raw, as published; source: tests/data/README.md.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config_reader.h"
#include "headroom/storage.h"
#include "quantization/quantization.h"
#include "stored_query.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

namespace fs = std::filesystem;

fs::path config_file(const std::string& name) {
  return data_folder() / "quantization" / (name + ".config.json");
}

/// The storage that a config states, also of families without a reader.
ModelSpec storage_of(const fs::path& file) {
  const nlohmann::json document = read_json(file);
  ModelSpec spec;
  if (file.string().ends_with("hf_quant_config.json")) {
    detail::read_quantization_file(document.dump(), file.string(), spec);
    return spec;
  }
  for (const char* const part : {"text_config", ""}) {
    if (*part != 0 && !document.contains(part)) continue;
    const nlohmann::json& object = *part == 0 ? document : document.at(part);
    detail::ConfigReader config(object, file.string());
    spec.torch_dtype = config.text_or({"torch_dtype", "dtype"}, spec.torch_dtype);
    detail::read_quantization(config, spec);
  }
  return spec;
}

ModelSpec storage_named(const std::string& name) { return storage_of(config_file(name)); }

/// Formats of the rules that do not keep the plain type, in order.
std::vector<std::string> formats(const ModelSpec& spec) {
  std::vector<std::string> names;
  for (const StorageRule& rule : spec.storage.rules) {
    if (rule.format) names.push_back(rule.format->name);
  }
  std::erase(names, "F32");  // biases of routers
  std::erase(names, "F16");  // what EXL2 leaves unquantised
  return names;
}

using Names = std::vector<std::string>;

StoredWeights stored_config(const std::string& name) {
  const Model model = load_model(config_file(name).string());
  return stored_weights(model.spec, build_graph(model.spec, {}));
}

Integer bytes_of(const StoredWeights& stored, const std::string& format) {
  Integer sum = 0;
  for (const StorageGroup& group : stored.groups) {
    if (group.format == format) sum += group.bytes;
  }
  return sum;
}

}  // namespace

TEST_CASE("every published quantisation at hand is understood") {
  std::vector<fs::path> folders = {data_folder() / "quantization"};
  const fs::path beside = data_folder() / "../../../shared/wild";
  if (fs::is_directory(beside)) folders.push_back(beside);
  std::size_t found = 0;
  for (const fs::path& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (!entry.path().string().ends_with("config.json")) continue;
      CAPTURE(entry.path().string());
      // Nemotron's has Infinity, which is no JSON, and its quantisation in hf_quant_config.json.
      if (!nlohmann::json::accept(read_file(entry.path()))) continue;
      const ModelSpec spec = storage_of(entry.path());
      if (spec.quantization.empty()) continue;
      ++found;
      CHECK_FALSE(formats(spec).empty());
      CHECK_FALSE(spec.storage.origin.empty());
      const bool average = spec.quantization == "exl2";
      const auto mixes = [](const std::string& note) { return note.ends_with("for all"); };
      const auto other_notes =
          std::ssize(spec.storage.notes) - std::ranges::count_if(spec.storage.notes, mixes);
      CHECK(other_notes == (average ? 1 : 0));
    }
  }
  CHECK(found >= 35);
}

TEST_CASE("each method has its format, with scales") {
  CHECK(formats(storage_named("deepseek-r1")) == Names{"FP8, a scale per 128 × 128"});
  CHECK(formats(storage_named("gpt-oss-120b")) == Names{"MXFP4"});
  CHECK(formats(storage_named("glm-5.1-nvfp4")) == Names{"NVFP4"});
  CHECK(formats(storage_named("kimi-k2.5")) == Names{"INT4, groups of 32"});
  CHECK(formats(storage_named("leo-hessianai-7b-chat-awq")) == Names{"AWQ 4-bit, groups of 128"});
  CHECK(formats(storage_named("orcamaid-v2-fix-13b-32k-gptq")) ==
        Names{"GPTQ 4-bit, groups of 128, symmetric"});
  CHECK(formats(storage_named("merge-and-unload-mistral")) == Names{"NF4, blocks of 64"});
  CHECK(formats(storage_named("falcon-7b-4bit-bnb")) == Names{"FP4, blocks of 64"});
  CHECK(formats(storage_named("gemma-3-4b-pt-6bit-mlx")) == Names{"MLX 6-bit, groups of 64"});
  CHECK(formats(storage_named("llama-4-scout-17b-16e-instruct-fp8-dynamic")) ==
        Names{"FP8, a scale per row"});
  CHECK(formats(storage_named("tinyllama-v1.1-bpw2.25-exl2")) ==
        Names{"EXL2, 2.25 bits on average", "EXL2, 6 bits on average"});
}

TEST_CASE("BitNet packs four ternary numbers into a byte, or stores what it will quantise whole") {
  const nlohmann::json config = {{"model_type", "bitnet"},
                                 {"architectures", {"BitNetForCausalLM"}},
                                 {"tie_word_embeddings", true},
                                 {"torch_dtype", "bfloat16"}};
  const auto bytes_of = [&](const char* mode) {
    nlohmann::json quantised = config;
    quantised["quantization_config"] = {{"quant_method", "bitnet"}, {"quantization_mode", mode}};
    const ModelSpec spec = spec_of(quantised);
    const Graph graph = build_graph(spec, {});
    return stored_weights(spec, graph).bytes;
  };
  // 30 layers of 69,468,160 ternary numbers and 7 scales; 440,320 weights of norms; 128,256 × 2560
  // embeddings: 1.18 GB, as model.safetensors of microsoft/bitnet-b1.58-2B-4T.
  CHECK(bytes_of("offline") == 30 * (69468160 / 4 + 7 * 2) + 440320 * 2 + 656670720);
  CHECK(bytes_of("online") == 2 * 2412820480);  // BitNetModel of transformers 5.24
}

TEST_CASE("a quantisation states the types of activations and KV-cache") {
  CHECK(storage_named("glm-5.1-nvfp4").storage.kv_cache == StatedType::float8);
  CHECK(storage_named("glm-5.1-nvfp4").storage.activations == StatedType::nvfp4);
  CHECK(storage_named("deepseek-r1").storage.activations == StatedType::float8);
  CHECK_FALSE(storage_named("deepseek-r1").storage.kv_cache);
  CHECK_FALSE(storage_named("gpt-oss-120b").storage.activations);
  CHECK_FALSE(storage_named("kimi-k2.5").storage.activations);
}

// 32 layers of (2·4096·4096 + 2·1024·4096 + 3·14336·4096) 4-bit values in blocks of 64 with a
// float32 each, and a table of 16 float32 for each of 7 matrices.
TEST_CASE("bitsandbytes leaves embedding, head and norms in 16 bits") {
  const StoredWeights stored = stored_config("merge-and-unload-mistral");
  const Integer values = Integer{32} * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096);
  CHECK(bytes_of(stored, "NF4, blocks of 64") == values / 2 + values / 64 * 4 + 32 * 7 * 64);
  const Integer plain = Integer{2} * 32000 * 4096 + 65 * 4096;
  CHECK(stored.bytes - bytes_of(stored, "NF4, blocks of 64") == 2 * plain);
}

namespace {

/// Storage of a config that only has this quantisation.
WeightStorage storage_of_method(const nlohmann::json& quantization) {
  const nlohmann::json document = {{"quantization_config", quantization}};
  detail::ConfigReader config(document, "config.json");
  ModelSpec spec;
  detail::read_quantization(config, spec);
  return spec.storage;
}

StorageFormat first_format(const nlohmann::json& quantization) {
  for (const StorageRule& rule : storage_of_method(quantization).rules) {
    if (rule.format) return *rule.format;
  }
  return {};
}

}  // namespace

// Bytes of a matrix [1024, 2048] by the tensors that each library writes for it.
TEST_CASE("formats take the bytes of the tensors that the libraries write") {
  const auto bytes = [](const nlohmann::json& quantization) {
    return first_format(quantization).bytes(1024, 2048);
  };
  constexpr Integer kValues = Integer{1024} * 2048;
  const nlohmann::json hqq = {{"weight_quant_params", {{"nbits", 4}, {"group_size", 64}}}};
  CHECK(bytes({{"quant_method", "hqq"}, {"quant_config", hqq}}) == kValues / 2 + kValues / 64 * 4);
  CHECK(bytes({{"quant_method", "torchao"},
               {"quant_type", "int4_weight_only"},
               {"quant_type_kwargs", {{"group_size", 64}}}}) == kValues / 2 + kValues / 64 * 4);
  CHECK(bytes({{"quant_method", "torchao"},
               {"quant_type", {{"default", {{"_type", "Int8WeightOnlyConfig"}}}}}}) ==
        kValues + 1024 * 2);
  CHECK(bytes({{"quant_method", "fbgemm_fp8"}}) == kValues + 1024 * 4);
  CHECK(bytes({{"quant_method", "fp8"}, {"activation_scheme", "static"}}) == kValues + 8);
  CHECK(bytes({{"group_size", 64}, {"bits", 6}}) == kValues * 6 / 8 + kValues / 64 * 4);
  CHECK(bytes({{"quant_method", "gptq"}, {"bits", 3}, {"group_size", 128}}) ==
        kValues * 3 / 8 + kValues / 128 * 2 + Integer{16} * 1024 * 3 / 8 + 2048 * 4);
  CHECK(bytes({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}}) ==
        kValues / 2 + 1024 * 2 + 1024 / 2 + 2048 * 4);
  const nlohmann::json mxfp4 = {
      {"dtype", "fp4"}, {"qscheme", "per_group"}, {"group_size", 32}, {"scale_format", "e8m0"}};
  CHECK(bytes({{"quant_method", "quark"}, {"global_quant_config", {{"weight", mxfp4}}}}) ==
        kValues / 2 + kValues / 32);
}

TEST_CASE("modules with formats of their own come before the general rule") {
  const WeightStorage gptq = storage_of_method(
      {{"quant_method", "gptq"},
       {"bits", 4},
       {"dynamic",
        {{"-:.*down_proj.*", nlohmann::json::object()}, {"+:.*q_proj.*", {{"bits", 8}}}}}});
  REQUIRE(gptq.rules.size() == 4);
  CHECK(gptq.rules[0].format->name == "GPTQ 8-bit, groups of 128");
  CHECK_FALSE(gptq.rules[1].format);
  const WeightStorage mlx =
      storage_of_method({{"bits", 4},
                         {"group_size", 64},
                         {"model.layers.0.mlp.gate", {{"bits", 8}, {"group_size", 64}}},
                         {"model.layers.1.mlp.gate", false}});
  REQUIRE(mlx.rules.size() == 4);
  CHECK(mlx.rules[0].format->name == "MLX 8-bit, groups of 64");
  CHECK_FALSE(mlx.rules[1].format);
  CHECK(formats(storage_named("qwen3.6-35b-a3b-nvfp4")) ==
        Names{"FP8, a scale per tensor", "NVFP4"});
}

TEST_CASE("what is unknown is an error or a note, never silent") {
  const auto refusal = [](const nlohmann::json& quantization) {
    return refusal_of([&] { static_cast<void>(storage_of_method(quantization)); });
  };
  CHECK(refusal({{"quant_method", "modelopt"}, {"quant_algo", "FP5"}}) ==
        "config.json#/quantization_config/quant_algo: \"FP5\" is not supported");
  CHECK(refusal({{"quant_method", "fp8"}, {"fmt", "e3m4"}}) ==
        "config.json#/quantization_config/fmt: \"e3m4\" is not supported");
  CHECK(refusal({{"quant_method", "gptq"}, {"bits", 40}}) ==
        "config.json#/quantization_config/bits: 40 bits are not supported");
  const WeightStorage unknown = storage_of_method({{"quant_method", "brand-new"}});
  REQUIRE(unknown.notes.size() == 1);
  CHECK(unknown.notes.front().find("\"brand-new\" is not known") != std::string::npos);
  CHECK(storage_of_method({{"bits", 4}, {"group_size", 32}}).notes.empty());
  CHECK(refusal("awq") == "config.json#/quantization_config: expected an object, not string");
}

/// GPTQ's values, scales of 16 bits and zero points of 8 groups, and the group of each input.
constexpr std::int64_t packed_query(std::int64_t bits) {
  return kQueryValues * bits / 8 + 8 * 2048 * 2 + 8 * 2048 * bits / 8 + 1024 * 4;
}

TEST_CASE("auto-round gives modules bits of their own, by name or expression") {
  for (const char* const method : {"auto-round", "intel/auto-round"}) {
    CAPTURE(std::string(method));
    const auto bytes = [&](const nlohmann::json& extra) {
      return qwen_bytes({{"quant_method", method}, {"bits", 4}, {"extra_config", extra}});
    };
    const Integer plain = bytes(nlohmann::json::object());
    nlohmann::json names = nlohmann::json::object();
    for (int layer = 0; layer < 28; ++layer) {
      names["model.layers." + std::to_string(layer) + ".self_attn.q_proj"] = {{"bits", 16}};
    }
    CHECK(bytes(names) - plain == Integer{28 * (kPlainQuery - packed_query(4))});
    CHECK(bytes({{"layers\\.[0-4]\\..*q_proj", {{"bits", 8}}}}) - plain ==
          Integer{5 * (packed_query(8) - packed_query(4))});
  }
}

TEST_CASE("a module of auto-round without bits of its own has those of the model") {
  const auto bytes = [](const nlohmann::json& extra) {
    return qwen_bytes({{"quant_method", "auto-round"}, {"bits", 8}, {"extra_config", extra}});
  };
  const nlohmann::json other_groups = {{"model.layers.0.self_attn.q_proj", {{"group_size", 128}}}};
  CHECK(bytes(other_groups) == bytes(nlohmann::json::object()));
  CHECK(bytes(nullptr) == bytes(nlohmann::json::object()));
  CHECK_THROWS_AS((void)bytes({1}), Error);
}

// AutoAWQ, awq/utils/module.py, exclude_layers_to_not_quantize; vLLM, is_layer_skipped_awq.
TEST_CASE("AWQ leaves out modules whose names contain an entry") {
  const auto bytes = [](const std::vector<std::string>& kept) {
    return qwen_bytes({{"quant_method", "awq"}, {"bits", 4}, {"modules_to_not_convert", kept}});
  };
  const Integer plain = bytes({});
  // Without the group of each input.
  const Integer query{kPlainQuery - (packed_query(4) - 1024 * 4)};
  CHECK(bytes({"self_attn.q"}) - plain == query * 28);
  CHECK(bytes({"self_attn.q_proj"}) - plain == query * 28);
  const Integer first = bytes({"model.layers.0."}) - plain;
  CHECK(first > query);
  CHECK(bytes({"model.layers.27."}) - plain == first);
  // Also layers 20 to 27.
  CHECK(bytes({"model.layers.2"}) - plain == first * 9);
}

// Half of the values in INT4, 16 bits that place 16 of them, and a scale per 128 inputs.
TEST_CASE("2:4 values of Marlin take half of the bits and their places") {
  const auto with = [](const char* format) {
    return qwen_bytes(
        {{"quant_method", "compressed-tensors"},
         {"format", format},
         {"ignore", {"lm_head"}},
         {"config_groups",
          {{"group_0",
            {{"targets", {"re:.*q_proj"}},
             {"weights",
              {{"num_bits", 4}, {"type", "int"}, {"strategy", "group"}, {"group_size", 128}}}}}}}});
  };
  const Integer none = with("dense");
  CHECK(none - with("marlin-24") ==
        Integer{28 * (kPlainQuery - (kQueryValues / 4 + kQueryValues / 8 + 8 * 2048 * 2))});
}

TEST_CASE("a quantisation whose bytes are unknown is incomplete, and an empty one is none") {
  for (const char* const method :
       {"quanto", "eetq", "higgs", "aqlm", "vptq", "spqr", "fp_quant", "w8a8_int8", "sinq"}) {
    CAPTURE(std::string(method));
    const WeightStorage storage = storage_of_method({{"quant_method", method}});
    CHECK_FALSE(storage.bytes_known);
    CHECK(storage.notes.size() == 1);
  }
  for (const char* const type : {"ModuleFqnToConfig", "FqnToConfig", "IntxWeightOnlyConfig"}) {
    CAPTURE(std::string(type));
    const WeightStorage storage = storage_of_method(
        {{"quant_method", "torchao"}, {"quant_type", {{"default", {{"_type", type}}}}}});
    CHECK_FALSE(storage.bytes_known);
    CHECK(storage.notes.size() == 1);
  }
  CHECK(storage_of_method({{"quant_method", "exl3"}, {"bits", 3.5}}).bytes_known);
  const WeightStorage empty = storage_of_method(nlohmann::json::object());
  CHECK(empty.notes.empty());
  CHECK(empty.origin.empty());
  CHECK(empty.bytes_known);
}

TEST_CASE("weights whose type or names are not known come with a note") {
  const auto notes_of = [](const std::string& preset, const nlohmann::json& changes) {
    nlohmann::json config = nlohmann::json::parse(find_preset(preset)->json).at("config");
    config.update(changes);
    const ModelSpec spec = spec_of(config);
    return stored_weights(spec, build_graph(spec, {})).notes;
  };
  const Names unknown_type = notes_of("gpt2", {{"torch_dtype", "float24"}});
  REQUIRE(unknown_type.size() == 1);
  CHECK(unknown_type.front().find("\"float24\" of weights is not known") != std::string::npos);
  const nlohmann::json fp8 = {{"quant_method", "fp8"},
                              {"modules_to_not_convert", {"model.layers.0.mlp.gate"}}};
  nlohmann::json unstored = read_json(data_folder() / "towers/tiny/ovis2.config.json");
  unstored["quantization_config"] = fp8;
  const ModelSpec unrun = spec_of(unstored);
  const Names unnamed = stored_weights(unrun, build_graph(unrun, {})).notes;
  REQUIRE(unnamed.size() == 1);
  CHECK(unnamed.front().find("lists of modules") != std::string::npos);
}
