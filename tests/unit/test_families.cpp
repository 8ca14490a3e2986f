// The registry of families: every record is whole, and no name means two families.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "families/drafts.h"
#include "family.h"
#include "headroom/model_source.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::detail;

// A record that leaves out a part does not compile, since no part has a default.
static_assert(!std::is_default_constructible_v<ModelTypes>);
static_assert(!std::is_default_constructible_v<ModelClasses>);
static_assert(!std::is_default_constructible_v<FamilyReader>);
static_assert(!std::is_default_constructible_v<OrNone<NameTable>>);
static_assert(!std::is_default_constructible_v<OrNone<GgufForm>>);
static_assert(!std::is_default_constructible_v<GgufForm>);

namespace {

/// The families of a config and of the configs nested in it.
void insert_types(const nlohmann::json& config, std::set<const Family*>& used) {
  if (!config.is_object()) return;
  const auto type = config.find("model_type");
  if (type != config.end() && type->is_string()) used.insert(find_family(type->get<std::string>()));
  for (const auto& [key, value] : config.items()) insert_types(value, used);
}

}  // namespace

TEST_CASE("every model type belongs to one family") {
  std::set<std::string_view> seen;
  for (const Family& family : families()) {
    for (const std::string_view name : family.model_types.names) {
      CAPTURE(name);
      CHECK(seen.insert(name).second);
      CHECK(find_family(name) == &family);
    }
  }
  CHECK(seen.size() >= 68);
  CHECK(find_family("no-such-model") == nullptr);
}

TEST_CASE(
    "every GGUF architecture belongs to one family, told apart by a count where two share it") {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Family& family : families()) {
    const auto* const form = std::get_if<GgufForm>(&family.gguf);
    if (form == nullptr) continue;
    for (const GgufArchitecture& architecture : form->architectures) {
      CAPTURE(architecture.name);
      CHECK(seen.insert({architecture.name, architecture.needs}).second);
    }
  }
  CHECK(seen.contains({"llama", ""}));
  CHECK(seen.contains({"llama", "expert_count"}));
}

TEST_CASE("an absent part of a family gives its reason") {
  for (const Family& family : families()) {
    CAPTURE(family.model_types.names.front());
    if (const auto* const none = std::get_if<None>(&family.names)) CHECK(!none->because.empty());
    if (const auto* const none = std::get_if<None>(&family.gguf)) CHECK(!none->because.empty());
  }
}

TEST_CASE("every class of a family has a name of its own") {
  for (const Family& family : families()) {
    std::set<std::string> names;
    for (const ModelClass& model_class : family.classes.list) {
      CAPTURE(model_class.name);
      CHECK(names.insert(model_class.name).second);
    }
    CHECK(!names.empty());
  }
}

TEST_CASE("every family has a preset, or a config of the tests' data") {
  std::set<const Family*> used;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::data_folder() / "golden/tiny")) {
    const nlohmann::json config = test::read_json(entry.path()).at("config");
    used.insert(find_family(config.at("model_type").get<std::string>()));
  }
  for (const char* folder : {"defaults", "encoders", "families", "published", "wild", "towers",
                             "state_spaces/configs"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(test::data_folder() / folder)) {
      if (entry.path().extension() != ".json") continue;
      insert_types(test::read_python_json(entry.path()), used);
    }
  }
  for (const test::CsvRow& row : test::read_csv(test::data_folder() / "drafts/params.csv")) {
    used.insert(find_draft(row.at("model_class")));
  }
  for (const Preset& preset : list_presets()) {
    used.insert(find_family(read_preset(preset).spec.model_type));
  }
  for (const Family& family : families()) {
    const std::string_view name = family.model_types.names.front();
    CHECK_MESSAGE(used.contains(&family), name);
  }
}

TEST_CASE("settings whose effect is not counted are refused unless they have no effect") {
  nlohmann::json config = {{"model_type", "llama"},    {"hidden_size", 8},
                           {"num_attention_heads", 2}, {"num_hidden_layers", 1},
                           {"intermediate_size", 16},  {"vocab_size", 32},
                           {"full_attn_mod", 1},       {"interpolate_factor", 1}};
  CHECK_NOTHROW((void)test::spec_of(config));
  for (const char* const key : {"full_attn_mod", "interpolate_factor"}) {
    nlohmann::json changed = config;
    changed[key] = 4;
    CHECK(test::refusal_of([&] { (void)test::spec_of(changed); }).find(key) != std::string::npos);
  }
}

TEST_CASE(
    "MiniMax M3 rotates whole heads without partial_rotary_factor, whatever rotary_dim says") {
  nlohmann::json config = test::read_json(test::data_folder() / "families/minimax_m3/config.json");
  config["rope_parameters"].erase("partial_rotary_factor");
  config["index_head_dim"] = config.at("head_dim");
  const ModelSpec spec = test::spec_of(config);
  REQUIRE(!spec.assumptions.empty());
  CHECK(spec.assumptions.back().find("RoPE rotates 12 dimensions") != std::string::npos);
}

TEST_CASE("a Mamba hybrid, whose convolution has the activation of its FFN, runs with SiLU only") {
  for (const char* const type : {"bamba", "granitemoehybrid", "falcon_h1", "jamba"}) {
    CAPTURE(type);
    nlohmann::json config = {{"model_type", type},       {"hidden_size", 16},
                             {"num_attention_heads", 2}, {"num_key_value_heads", 2},
                             {"num_hidden_layers", 1},   {"intermediate_size", 32},
                             {"vocab_size", 32},         {"mamba_n_heads", 4},
                             {"mamba_d_head", 8},        {"mamba_d_ssm", 32}};
    if (config["model_type"] != "falcon_h1") config.erase("mamba_d_ssm");
    if (config["model_type"] == "jamba") {
      config.erase("mamba_n_heads");
      config.erase("mamba_d_head");
    }
    config["hidden_act"] = "silu";
    CHECK(test::spec_of(config).not_run.empty());
    config["hidden_act"] = "gelu";
    CHECK_FALSE(test::spec_of(config).not_run.empty());
  }
}

namespace {

nlohmann::json config_of(const std::string& file) {
  return test::read_json(test::data_folder() / file);
}

/// The refusal of `config` with the value at `pointer` replaced.
std::string refusal_with(nlohmann::json config, const std::string& pointer,
                         const nlohmann::json& value) {
  config[nlohmann::json::json_pointer(pointer)] = value;
  return test::refusal_of([&] { (void)test::spec_of(config); });
}

void check_refused_at(const nlohmann::json& config, const std::string& pointer,
                      const nlohmann::json& value) {
  CAPTURE(pointer);
  CHECK(refusal_with(config, pointer, value).find(pointer) != std::string::npos);
}

}  // namespace

TEST_CASE("LayoutLMv3 without a patch, or with more pixels of a patch than 64 bits, is refused") {
  nlohmann::json config = config_of("towers/tiny/layoutlmv3.config.json");
  check_refused_at(config, "/patch_size", 13);
  config["num_channels"] = 1;
  config["input_size"] = 3037000500;  // whose square exceeds 2^63 - 1
  check_refused_at(config, "/patch_size", 3037000500);
  check_refused_at(config, "/coordinate_size", 9);
}

TEST_CASE("DaViT with an empty stage, or with networks of no width, is refused") {
  const nlohmann::json config = config_of("towers/tiny/florence2.config.json");
  check_refused_at(config, "/vision_config/embed_dim", {8, 16, 0, 32});
  check_refused_at(config, "/vision_config/patch_size", {5, 0, 3, 3});
  check_refused_at(config, "/vision_config/depths", {0, 0, 0, 0});
  check_refused_at(config, "/vision_config/mlp_ratio", 0);
  check_refused_at(config, "/vision_config/patch_prenorm", {true, false});
}

TEST_CASE("sizes of DBRX's parts are those of the model") {
  nlohmann::json config = config_of("towers/tiny/dbrx.config.json");
  check_refused_at(config, "/ffn_config/hidden_size", 40);
  config.erase("attn_config");
  CHECK(test::spec_of(config).decoder->self_attention.num_key_value_heads == 2);
}

// baidu/ERNIE-4.5-0.3B-PT was published with the class names of its own code.
TEST_CASE("ERNIE 4.5 is read by the class names of its vendor and of transformers") {
  nlohmann::json config = {{"model_type", "ernie4_5"}, {"hidden_size", 64},
                           {"intermediate_size", 128}, {"num_hidden_layers", 2},
                           {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                           {"vocab_size", 96}};
  for (const char* const name : {"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"}) {
    config["architectures"] = {name};
    const ModelSpec spec = test::spec_of(config);
    CHECK(spec.architecture == name);
    CHECK(spec.head.language_model->weight == WeightSharing::shared);
  }
  config["architectures"] = {"Ernie4_5_Model"};
  CHECK_FALSE(test::spec_of(config).head.language_model);
}

TEST_CASE("Aria's numbers of patches are whole positive numbers, each written once") {
  const nlohmann::json config = config_of("golden/models/aria_images/config.json");
  CHECK(test::spec_of(config).unread_keys.empty());
  for (const char* const key : {"abc", "", "-5", "0", "16abc", "16 ", "99999999999999999999"}) {
    CAPTURE(key);
    const nlohmann::json table{{key, 5}};
    CHECK_FALSE(refusal_with(config, "/projector_patch_to_query_dict", table).empty());
  }
  const nlohmann::json twice{{"16", 5}, {"016", 7}};
  CHECK_FALSE(refusal_with(config, "/projector_patch_to_query_dict", twice).empty());
}

TEST_CASE("numbers of layers that are built one by one are limited, by the key that states them") {
  check_refused_at(config_of("golden/models/blip2_images/config.json"),
                   "/qformer_config/num_hidden_layers", 1001);
  check_refused_at(config_of("towers/tiny/longcat_flash.config.json"), "/num_layers", 50001);
}

TEST_CASE("BEiT's patches are averaged by classes with a pooler alone") {
  nlohmann::json config = config_of("towers/tiny/data2vec_vision.config.json");
  config["use_relative_position_bias"] = false;
  const auto averages = [&] { return test::spec_of(config).not_run.find("mean of its patches"); };
  CHECK(averages() != std::string::npos);
  config["architectures"] = {"Data2VecVisionModel"};
  CHECK(averages() == std::string::npos);
}

TEST_CASE("a block of DFlash sees itself, unless its config is causal or a layer has a window") {
  nlohmann::json config = config_of("drafts/qwen3.6-27b-dflash.config.json");
  const auto open_layers = [&] {
    const ModelSpec spec = test::spec_of(config);
    std::int64_t open = 0;
    for (std::int64_t layer = 0; layer < spec.decoder->num_layers; ++layer) {
      const AttentionSpec& attention = spec.decoder->attention_of(spec.decoder->variant(layer));
      if (attention.lookahead == Lookahead::prompt) ++open;
    }
    return open;
  };
  CHECK(open_layers() == 1);  // the last of five
  config["is_causal"] = true;
  CHECK(open_layers() == 0);
  check_refused_at(config, "/dflash_config/attention_mode", "mla");
}

// Gemma4TextConfig.__post_init__ of transformers 5.24, which then drops the global_ keys where
// per_layer_config is.
TEST_CASE("the last layer of Gemma 4 has full attention, whatever layer_types says") {
  nlohmann::json config = config_of("golden/models/gemma4_text/config.json");
  const auto values = [&] { return test::parameters_on(build_graph(test::spec_of(config), {})); };
  const Integer before = values();
  config["layer_types"][4] = "sliding_attention";
  CHECK(values() == before);
}

TEST_CASE("full layers of Gemma 4 have the heads that per_layer_config lists, else those of all") {
  nlohmann::json config = config_of("golden/models/gemma4_text/config.json");
  const auto full_heads = [&] {
    const ModelSpec spec = test::spec_of(config);
    const AttentionSpec& full = spec.decoder->attention_of(spec.decoder->variant(2));
    return std::pair(full.head_dim, full.num_key_value_heads);
  };
  CHECK(full_heads() == std::pair<std::int64_t, std::int64_t>(16, 2));
  config["global_head_dim"] = 24;
  const nlohmann::json one_key_value_head{{"num_key_value_heads", 1}};
  config["per_layer_config"] = {{"2", one_key_value_head}, {"4", one_key_value_head}};
  CHECK(full_heads() == std::pair<std::int64_t, std::int64_t>(12, 1));
  config.erase("per_layer_config");
  CHECK(full_heads() == std::pair<std::int64_t, std::int64_t>(24, 2));
}
