// Readers of model families: choices that determine figures.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

nlohmann::json tiny(const std::string& name, const std::string& key = "config") {
  return read_json(data_folder() / "golden/tiny" / (name + ".json")).at(key);
}

}  // namespace

TEST_CASE("the class in architectures determines heads and poolers") {
  nlohmann::json config = tiny("bert_model");
  CHECK(spec_of(config).head.pooler);
  config["architectures"] = {"BertForMaskedLM"};
  const ModelSpec masked = spec_of(config);
  CHECK_FALSE(masked.head.pooler);
  REQUIRE(masked.head.language_model.has_value());
  CHECK(masked.head.language_model->weight == WeightSharing::shared);
  config["architectures"] = {"BertForSequenceClassification"};
  config["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  const ModelSpec labels = spec_of(config);
  CHECK(labels.head.pooler);
  CHECK(labels.head.classifier->num_labels == 3);
  config.erase("architectures");
  CHECK(spec_of(config).architecture == "BertModel");
}

TEST_CASE("a classifier without a label is refused, and other classes do not read the labels") {
  nlohmann::json config = tiny("bert_model");
  config["id2label"] = nlohmann::json::object();
  CHECK_FALSE(spec_of(config).head.classifier);
  config["architectures"] = {"BertForSequenceClassification"};
  CHECK_THROWS_WITH_AS((void)spec_of(config), doctest::Contains("has no label"), Error);
  config["num_labels"] = 1;
  CHECK(spec_of(config).head.classifier->num_labels == 1);
}

// modeling_bert.py: the logits are split into two columns, which fails for any other number.
TEST_CASE("a class for spans with other labels than two is counted, and not run") {
  for (const char* const name : {"bert_model", "modernbert", "distilbert"}) {
    CAPTURE(std::string(name));
    nlohmann::json config = tiny(name);
    const std::string model = config.at("architectures").at(0);
    config["architectures"] = {model.substr(0, model.find("Bert") + 4) + "ForQuestionAnswering"};
    config["num_labels"] = 2;
    CHECK(spec_of(config).not_run.empty());
    config["num_labels"] = 1;
    CHECK(spec_of(config).head.classifier->num_labels == 1);
    CHECK(spec_of(config).not_run.find("has 1 label") != std::string::npos);
    config["num_labels"] = 3;
    CHECK_FALSE(spec_of(config).not_run.empty());
  }
}

TEST_CASE("T5 v1.1 has an untied head in configs of transformers 4 and 5") {
  for (const char* const key : {"config", "config_v5"}) {
    CAPTURE(key);
    const ModelSpec gated = spec_of(tiny("t5_v1_1", key));
    CHECK(gated.head.language_model->weight == WeightSharing::separate);
    CHECK_FALSE(gated.head.language_model->scale_by_inverse_sqrt_hidden);
    CHECK(gated.decoder->ffn.kind == FfnKind::gated);
    const ModelSpec plain = spec_of(tiny("t5", key));
    CHECK(plain.head.language_model->weight == WeightSharing::shared);
    CHECK(plain.head.language_model->scale_by_inverse_sqrt_hidden);
  }
}

TEST_CASE("settings without a kernel are counted, and not run") {
  const auto parameters = [](const nlohmann::json& config) {
    return count(spec_of(config), {}).figures.parameters;
  };
  const auto check = [&](nlohmann::json config, const char* key, const nlohmann::json& value) {
    CAPTURE(key);
    const Integer usual = parameters(config);
    CHECK(spec_of(config).not_run.empty());
    config[key] = value;
    CHECK_FALSE(spec_of(config).not_run.empty());
    CHECK(parameters(config) == usual);
  };
  for (const char* const name : {"mamba", "falcon_mamba", "olmo_hybrid"}) {
    CAPTURE(std::string(name));
    check(read_python_json(data_folder() / "state_spaces/configs" / (std::string(name) + ".json")),
          "hidden_act", "gelu");
  }
}

TEST_CASE("RoPE scaling is read from configs of transformers 4 and 5") {
  for (const char* const key : {"config", "config_v5"}) {
    CAPTURE(key);
    const RopeSpec rope = spec_of(tiny("llama3_rope", key)).position.rope;
    CHECK(rope.scaling == RopeScalingKind::llama3);
    CHECK(rope.original_max_position_embeddings == 32);
  }
  CHECK(spec_of(tiny("llama_linear_rope")).position.rope.factor == 4);
}

TEST_CASE("the head size is read, not derived as hidden size over heads") {
  const AttentionSpec attention = spec_of(tiny("llama_head_dim")).decoder->self_attention;
  CHECK(attention.head_dim == 16);
  CHECK(attention.num_attention_heads == 4);
}

TEST_CASE("presets are found by unique names and aliases") {
  CHECK(load_model("bert-base").spec.name == "bert-base-uncased");
  CHECK(load_model("bert-base-uncased").spec.name == "bert-base-uncased");
  std::map<std::string, int> names;
  for (const Preset& preset : list_presets()) {
    ++names[preset.name];
    for (const std::string& alias : preset.aliases) ++names[alias];
  }
  for (const auto& entry : names) {
    CAPTURE(entry.first);
    CHECK(entry.second == 1);
  }
}

TEST_CASE("every file in the preset folder is compiled in") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEADROOM_PRESETS)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const auto preset = find_preset(entry.path().stem().string());
    REQUIRE_MESSAGE(preset.has_value(), entry.path().string());
    CHECK(nlohmann::json::parse(preset->json) == read_json(entry.path()));
  }
  CHECK(files >= 150);
}

TEST_CASE("every preset says where its config comes from, and raw ones have every key") {
  std::map<std::string, std::string> states;
  const std::filesystem::path presets = HEADROOM_PRESETS;
  for (const CsvRow& row : read_csv(presets.parent_path() / "sources.csv")) {
    states[row.at("preset")] = row.at("state");
  }
  // The raw files that tests/data/wild has as well.
  const std::map<std::string, std::string> wild = {
      {"deepseek-r1", "deepseek-r1"},
      {"deepseek-v2-lite", "deepseek-v2-lite"},
      {"deepseek-v3.2", "deepseek-v3.2"},
      {"deepseek-v4-flash", "deepseek-v4-flash"},
      {"deepseek-v4-pro", "deepseek-v4-pro"},
      {"gemma-4-26b-a4b", "gemma-4-26b-a4b"},
      {"gemma-4-31b-it-nvfp4", "gemma-4-31b-it-nvfp4"},
      {"glm-5", "glm-5"},
      {"glm-5.1", "glm-5.1"},
      {"glm-5.2-fp8", "glm-5.2-fp8"},
      {"gpt-oss-120b", "gpt-oss-120b"},
      {"kimi-k2", "kimi-k2-instruct"},
      {"kimi-k2.5", "kimi-k2.5"},
      {"llama-2-7b", "llama-2-7b-hf"},
      {"llama-3.1-70b", "meta-llama-3.1-70b"},
      {"mimo-v2-flash", "mimo-v2-flash"},
      {"minimax-m2.5", "minimax-m2.5"},
      {"minimax-m2.7", "minimax-m2.7"},
      {"mixtral-8x22b", "mixtral-8x22b-v0.1"},
      {"nemotron-3.5-lightning-30b-a3b", "nvidia-nemotron-3.5-lightning-30b-a3b-nvfp4"},
      {"qwen3-0.6b", "qwen3-0.6b"},
      {"qwen3-14b", "qwen3-14b"},
      {"qwen3-235b-a22b", "qwen3-235b-a22b"},
      {"qwen3-30b-a3b", "qwen3-30b-a3b"},
      {"qwen3-8b", "qwen3-8b"},
      {"qwen3-coder-480b-a35b", "qwen3-coder-480b-a35b-instruct"},
      {"qwen3-vl-235b-a22b", "qwen3-vl-235b-a22b-instruct"},
      {"qwen3-vl-2b", "qwen3-vl-2b-instruct"},
      {"qwen3-vl-4b", "qwen3-vl-4b-instruct"},
      {"qwen3.5-122b-a10b", "qwen3.5-122b-a10b"},
      {"qwen3.5-27b", "qwen3.5-27b"},
      {"qwen3.5-397b-a17b", "qwen3.5-397b-a17b"},
      {"qwen3.6-35b-a3b-nvfp4", "qwen3.6-35b-a3b-nvfp4"},
      {"yi-34b", "yi-34b"}};
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.name);
    REQUIRE(states.contains(preset.name));
    const std::string& state = states.at(preset.name);
    const auto document = nlohmann::json::parse(preset.json);
    const std::string source = document.at("source");
    const bool said = source.find("config.json, as published") != std::string::npos;
    CHECK(said == state.starts_with("raw"));
    if (!wild.contains(preset.name)) continue;
    CHECK(state == "raw");
    const std::string file = wild.at(preset.name) + ".config.json";
    CHECK(document.at("config") == read_json(data_folder() / "wild" / file));
  }
  CHECK(states.size() == list_presets().size());
}

TEST_CASE("a model from a file or a folder is named after the folder") {
  const auto folder = std::filesystem::temp_directory_path() / "headroom-test-model";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << tiny("llama").dump();
  CHECK(load_model(folder.string()).spec.name == "headroom-test-model");
  CHECK(load_model((folder / "config.json").string()).spec.name == "headroom-test-model");
  CHECK(load_model((folder / "").string()).spec.name == "headroom-test-model");
  std::filesystem::remove_all(folder);
}

TEST_CASE("absent keys have the published class's defaults") {
  const nlohmann::json latent = tiny("deepseek_v3");
  nlohmann::json config = latent;
  config["n_routed_experts"] = 16;
  config.erase("n_group");
  config.erase("topk_group");
  const ExpertsSpec experts = *spec_of(config).decoder->ffn_of(1).experts;
  CHECK(experts.num_groups == 8);
  CHECK(experts.chosen_groups == 4);

  nlohmann::json phi3 = tiny("phi3");
  const std::vector<double> factors(phi3.at("hidden_size").get<std::size_t>() /
                                        phi3.at("num_attention_heads").get<std::size_t>() / 2,
                                    1.5);
  phi3.erase("original_max_position_embeddings");
  phi3["rope_scaling"] = {
      {"type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}};
  CHECK(spec_of(phi3).position.rope.original_max_position_embeddings == 4096);

  nlohmann::json sparse = latent;
  sparse["model_type"] = "glm_moe_dsa";
  sparse["architectures"] = {"GlmMoeDsaForCausalLM"};
  for (const char* const key : {"q_lora_rank", "qk_nope_head_dim", "v_head_dim", "qk_head_dim"}) {
    sparse.erase(key);
  }
  const AttentionSpec attention = spec_of(sparse).decoder->self_attention;
  CHECK(attention.latent->q_lora_rank == 2048);
  CHECK(attention.latent->qk_nope_head_dim == 192);
  CHECK(attention.value_head_dim == 256);
}

TEST_CASE("norms of latent vectors have a separate epsilon") {
  nlohmann::json config = tiny("deepseek_v3");
  config["rms_norm_eps"] = 0.01;
  CHECK(spec_of(config).decoder->self_attention.latent->norm_eps == 1e-6);
}

TEST_CASE("GPT-2 may divide attention scores by the layer number, or not scale them") {
  nlohmann::json config = tiny("gpt2");
  const double usual = 1 / std::sqrt(static_cast<double>(config.at("n_embd").get<int>()) /
                                     config.at("n_head").get<int>());
  config["scale_attn_by_inverse_layer_idx"] = true;
  const StackSpec by_layer = *spec_of(config).decoder;
  CHECK(by_layer.attention_of(by_layer.variant(2)).fixed_scale == doctest::Approx(usual / 3));
  config["scale_attn_weights"] = false;
  const StackSpec by_number = *spec_of(config).decoder;
  CHECK(by_number.attention_of(by_number.variant(0)).scale == AttentionScale::none);
  CHECK(by_number.attention_of(by_number.variant(1)).fixed_scale == 0.5);
}

TEST_CASE("every OPT class has the narrower last hidden state") {
  nlohmann::json config = tiny("opt");
  config["word_embed_proj_dim"] = 16;
  for (const char* const architecture : {"OPTForCausalLM", "OPTModel"}) {
    CAPTURE(architecture);
    config["architectures"] = {architecture};
    const Graph graph = build_graph(spec_of(config), {});
    const auto is_out = [](const Weight& weight) {
      return weight.path == "head.project_out.weight";
    };
    CHECK(std::ranges::count_if(graph.weights, is_out) == 1);
  }
}

TEST_CASE("Falcon's first configs have the defaults of the vendor's class") {
  nlohmann::json config = tiny("falcon_mqa");
  config["architectures"] = {"RWForCausalLM"};
  for (const char* const key : {"new_decoder_architecture", "multi_query", "parallel_attn"}) {
    config.erase(key);
  }
  config["num_kv_heads"] = 2;
  config["model_type"] = "RefinedWeb";
  const StackSpec large = *spec_of(config).decoder;
  CHECK(large.residual == ResidualKind::parallel_two_norms);
  CHECK(large.self_attention.num_key_value_heads == 2);
  config["model_type"] = "RefinedWebModel";
  config.erase("num_kv_heads");
  const StackSpec small = *spec_of(config).decoder;
  CHECK(small.residual == ResidualKind::sequential);
  CHECK(small.self_attention.num_key_value_heads == 4);
}

TEST_CASE("proportional RoPE spans the head, whatever part of it the family rotates") {
  // transformers 5.24, _compute_proportional_rope_parameters: ⌊part · head_dim / 2⌋ pairs turn, and
  // the others of the head have frequency 0. Persimmon's class rotates half of a head by default.
  const auto rope_of = [](const nlohmann::json& parameters) {
    return spec_of({{"model_type", "persimmon"},
                    {"hidden_size", 48},
                    {"num_attention_heads", 4},
                    {"num_hidden_layers", 2},
                    {"intermediate_size", 72},
                    {"vocab_size", 101},
                    {"rope_parameters", parameters}})
        .position.rope;
  };
  const RopeSpec stated = rope_of(
      {{"rope_type", "proportional"}, {"rope_theta", 1e4}, {"partial_rotary_factor", 0.75}});
  CHECK(stated.rotary_dim == 0);
  CHECK(stated.rotated_pairs == 4);
  const RopeSpec usual = rope_of({{"rope_type", "proportional"}, {"rope_theta", 1e4}});
  CHECK(usual.rotary_dim == 0);
  CHECK(usual.rotated_pairs == 3);
}

TEST_CASE("rope_scaling goes before rope_parameters, as in the classes") {
  nlohmann::json config = tiny("llama");
  config["rope_theta"] = 10000.0;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  const RopeSpec alone = spec_of(config).position.rope;
  config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 500.0}};
  const RopeSpec both = spec_of(config).position.rope;
  CHECK(both.factor == alone.factor);
  CHECK(both.theta == alone.theta);
  config["rope_scaling"] = nlohmann::json::object();
  CHECK(spec_of(config).position.rope.factor == 2);
  config.erase("rope_scaling");
  CHECK(spec_of(config).position.rope.factor == 2);
}

TEST_CASE(
    "towers take the base of their RoPE from rope_parameters, where transformers 5 writes it") {
  for (const char* const name : {"mistral3", "glm4v", "qwen2_5_vl"}) {
    CAPTURE(name);
    nlohmann::json config =
        read_json(data_folder() / "towers/tiny" / (std::string(name) + ".config.json"));
    config["vision_config"].erase("rope_theta");
    CHECK(spec_of(config).tower->position.rope.theta == 10000);
    config["vision_config"]["rope_parameters"] = {{"rope_theta", 15000.0}};
    CHECK(spec_of(config).tower->position.rope.theta == 15000);
  }
}
