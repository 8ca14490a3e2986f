// Configs with keys that few published files have: the parameters that the change adds or removes,
// counted by hand from the tensors of the class.
#include <doctest/doctest.h>

#include "reference/config_with_keys.h"
#include "support/data.h"
#include "support/python_json.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

ModelSpec spec_with(const char* file, const char* with) {
  return spec_of(config_with_keys(file, with));
}

/// Parameters of the config in `file` with these changes.
std::int64_t parameters_with(const char* file, const char* with) {
  return static_cast<std::int64_t>(parameters_on(build_graph(spec_with(file, with), {})));
}

/// Parameters that the changes add to those of the config.
std::int64_t added_with(const char* file, const char* with) {
  return parameters_with(file, with) - parameters_with(file, "{}");
}

constexpr const char* kChatglm = "wild/chatglm.config.json";
constexpr const char* kNas = "families/nemotron_nas/config.json";
constexpr const char* kOlmoHybrid = "state_spaces/configs/olmo_hybrid.json";

/// ChatGLM-6B's format: two layers of 64 columns, 4 heads and an inner width of 256.
json first_chatglm(const json& keys) {
  json config = {{"model_type", "chatglm"}, {"architectures", {"ChatGLMModel"}},
                 {"hidden_size", 64},       {"inner_hidden_size", 256},
                 {"num_layers", 2},         {"num_attention_heads", 4},
                 {"vocab_size", 96},        {"max_sequence_length", 64}};
  config.update(keys);
  return config;
}

}  // namespace

TEST_CASE("ChatGLM's projections have biases by add_qkv_bias, or all by add_bias_linear") {
  // 32 heads and 2 groups of 128 columns in 28 layers of 4096; networks of 2 · 13696.
  constexpr std::int64_t kOfQueries = 4096 + 2 * 2 * 128;
  CHECK(added_with(kChatglm, R"({"add_qkv_bias": false})") == -28 * kOfQueries);
  CHECK(added_with(kChatglm, R"({"add_qkv_bias": false, "add_bias_linear": true})") ==
        28 * (4096 + 2 * 13696 + 4096));
}

TEST_CASE("the first ChatGLM ties its head unless the config says otherwise") {
  const auto parameters = [](const json& keys) {
    return parameters_on(build_graph(spec_of(first_chatglm(keys)), {}));
  };
  constexpr std::int64_t kLayer = 4 * (64 * 64 + 64) + 2 * 64 * 256 + 256 + 64 + 2 * 2 * 64;
  constexpr std::int64_t kTied = 96 * 64 + 2 * kLayer + 2 * 64;
  CHECK(parameters(json::object()) == kTied);
  CHECK(parameters({{"tie_word_embeddings", false}}) == kTied + 96 * 64);
  const json classifier = {{"architectures", {"ChatGLMForSequenceClassification"}}};
  CHECK(parameters(classifier) == kTied + 2 * 64 + 2);
}

TEST_CASE("Cohere2 MoE with experts in every layer averages the shared ones' output, or adds it") {
  const std::string alike = R"({"mlp_layer_types": ["sparse", "sparse", "sparse", "sparse"],
      "prefix_dense_intermediate_size": null, "layer_types": ["sliding_attention",
      "sliding_attention", "sliding_attention", "sliding_attention"])";
  constexpr const char* kFile = "families/cohere2_moe/config.json";
  // Heads of 8: 4 and 2 · 2; 6 experts of 20 and a router; 2 shared ones.
  constexpr std::int64_t kPlain = 2 * 32 * 32 + 2 * 32 * 16 + 32 + 6 * 3 * 32 * 20 + 6 * 32;
  constexpr std::int64_t kShared = 3 * 32 * 40;
  constexpr std::int64_t kWords = 96 * 32 + 32;
  CHECK(parameters_with(kFile, (alike + "}").c_str()) == kWords + 4 * (kPlain + kShared));
  CHECK(parameters_with(kFile, (alike + R"(, "num_shared_experts": 0})").c_str()) ==
        kWords + 4 * kPlain);
  const auto multiplier = [&](const char* more) {
    return spec_with(kFile, (alike + more).c_str()).decoder->ffn.output_multiplier;
  };
  CHECK(multiplier("}") == 0.5);
  CHECK(multiplier(R"(, "num_shared_experts": 0})") == 1);
  CHECK(multiplier(R"(, "shared_expert_combination_strategy": "sum"})") == 1);
}

TEST_CASE("GLM-5.2's index_topk_pattern lists the layers with an indexer") {
  constexpr const char* kFile = "towers/tiny/glm_moe_dsa.config.json";
  // 12 heads of 8: queries of 24 columns, keys and their LayerNorm, weights of heads.
  constexpr std::int64_t kIndexer = 24 * 12 * 8 + 48 * 8 + 2 * 8 + 48 * 12;
  CHECK(
      added_with(kFile,
                 R"({"indexer_types": null, "index_topk_pattern": ["full", "shared", "full"]})") ==
      -kIndexer);
  CHECK(added_with(kFile, R"({"indexer_types": null, "index_topk_pattern": "FSS"})") ==
        -2 * kIndexer);
}

TEST_CASE("ERNIE 4.5 VL's layers with experts follow from the lists of first and last ones") {
  // Layers 1 and 2 of 3 are sparse; a list of both kinds alone makes every second layer sparse.
  // Experts of text and images with routers and their biases, a shared one, against a dense one.
  constexpr std::int64_t kExperts = 4 * 3 * 48 * (20 + 12) + 2 * (4 * 48 + 4) + 3 * 48 * 20;
  constexpr std::int64_t kBiases = 2 * 20 + 48;
  constexpr std::int64_t kDense = 3 * 48 * 72 + 2 * 72 + 48;
  CHECK(added_with("towers/tiny/ernie4_5_vl_moe.config.json",
                   R"({"text_config": {"mlp_layer_types": null, "moe_layer_start_index": [0, 0],
                  "moe_layer_end_index": [2, 2]}})") == kDense - kExperts - kBiases);
}

TEST_CASE("a sequence classifier of EuroBERT runs on one vector, not on the mean of scores") {
  const auto spec = [](const char* pooling) {
    json config = config_with_keys("families/eurobert/config.json", R"({"num_labels": 3})");
    config["architectures"] = {"EuroBertForSequenceClassification"};
    config["classifier_pooling"] = pooling;
    return spec_of(config);
  };
  // A dense layer and the scores in place of the words' head, all with biases.
  const std::int64_t change = 48 * 48 + 48 + 48 * 3 + 3 - (97 * 48 + 97);
  const std::int64_t base = parameters_with("families/eurobert/config.json", "{}");
  for (const char* const pooling : {"bos", "mean", "late"}) {
    CAPTURE(pooling);
    const ModelSpec read = spec(pooling);
    CHECK(parameters_on(build_graph(read, {})) == base + change);
    CHECK(read.not_run.empty() == (std::string_view(pooling) != "late"));
  }
}

TEST_CASE("GLM-5 Next takes the sizes of linear_attn_config before those of the class") {
  constexpr const char* kFile = "towers/tiny/glm5_next_text.config.json";
  // A head less: its queries, keys, values, convolutions, decay, gates and output, in 2 layers.
  constexpr std::int64_t kHead = 3 * 48 * 8 + 3 * 4 * 8 + 1 + 8 + 48 + 2 * 8 * 8 + 8 * 48;
  CHECK(added_with(kFile, R"({"linear_attn_config": {"num_heads": 2, "head_dim": 8}})") ==
        -2 * kHead);
  const auto bound = [](const char* with) {
    json config = config_with_keys(kFile, with);
    config["linear_lower_bound"] = nullptr;
    const StackSpec stack = *spec_of(config).decoder;
    return stack.attention_of(stack.variant(0)).gated_delta->decay_bound;
  };
  CHECK(bound("{}") == 0);
  CHECK(bound(R"({"linear_attn_config": {"num_heads": 2}})") == -5);  // safe_gate of the class
  CHECK(bound(R"({"linear_attn_config": {"safe_gate": false}})") == 0);
  CHECK(added_with(kFile,
                   R"({"layer_types": ["linear_attention", "full_attention", "linear_attention",
                                         "full_attention"]})") == 0);
}

TEST_CASE("a router of LongCat-Flash has a bias for experts that compute and those that do not") {
  CHECK(added_with("towers/tiny/longcat_flash.config.json", R"({"router_bias": true})") ==
        2 * (4 + 2));
}

TEST_CASE("EXAONE MoE's mlp_layer_types decide before is_moe_layer") {
  constexpr const char* kFile = "families/exaone_moe/config.json";
  CHECK(added_with(kFile, R"({"is_moe_layer": [true, true, true]})") == 0);
  // 6 experts, a shared one, and a router with a bias, against a dense network.
  constexpr std::int64_t kExperts = 7 * 3 * 24 * 16 + 6 * 24 + 6;
  CHECK(added_with(kFile, R"({"is_moe_layer": [false, true, true],
                         "mlp_layer_types": ["dense", "dense", "sparse"]})") ==
        3 * 24 * 40 - kExperts + 6);  // its bias is a buffer
}

TEST_CASE("Nemotron-NAS reads blocks whose first ones lack attention or a network") {
  const auto with_block = [](const char* block) {
    json config = config_with_keys(kNas, "{}");
    config["block_configs"][0].merge_patch(json::parse(block));
    return spec_of(config);
  };
  const auto more = [&](const char* block) {
    return static_cast<std::int64_t>(parameters_on(build_graph(with_block(block), {}))) -
           parameters_with(kNas, "{}");
  };
  // 4 query and 2 KV heads of 6; a network of 2 · 5.25 · 24 / 3 columns, rounded up to 256.
  CHECK(more(R"({"attention": {"no_op": true}})") == -(2 * 24 * 24 + 2 * 24 * 12 + 24));
  CHECK(more(R"({"ffn": {"no_op": true}})") == -(3 * 24 * 256 + 24));
  CHECK(more(R"({"ffn": {"hidden_act": "gelu"}})") == 0);
  const StackSpec stack = *with_block(R"({"ffn": {"hidden_act": "gelu"}})").decoder;
  CHECK(stack.ffn_of(stack.variant(0)).activation == ActivationKind::gelu);
  CHECK(stack.ffn_of(stack.variant(7)).activation == ActivationKind::silu);
  json config = config_with_keys(kNas, "{}");
  config["block_configs"][0]["attention"]["no_op"] = nullptr;
  CHECK(parameters_on(build_graph(spec_of(config), {})) == parameters_with(kNas, "{}"));
}

TEST_CASE("OLMo 3 scales the RoPE of full layers alone") {
  const ModelSpec spec = spec_with("golden/tiny/olmo3.json",
                                   R"({"rope_scaling": {"rope_type": "yarn", "factor": 4,
                                       "original_max_position_embeddings": 16}})");
  const StackSpec& stack = *spec.decoder;
  CHECK(spec.position.rope.scaling == RopeScalingKind::yarn);
  for (const std::int64_t layer : {0, 1}) {
    const AttentionSpec& sliding = stack.attention_of(stack.variant(layer));
    REQUIRE(sliding.rope.has_value());
    CHECK(sliding.rope->scaling == RopeScalingKind::none);
    CHECK(sliding.rope->theta == 500000);
  }
  CHECK_FALSE(stack.attention_of(stack.variant(2)).rope.has_value());
}

TEST_CASE("OLMo hybrid rotates by rope_theta in either place, and ends in full attention") {
  const auto position = [](const char* with) { return spec_with(kOlmoHybrid, with).position.kind; };
  CHECK(position(R"({"rope_theta": null, "rope_parameters": {"rope_theta": 1e4}})") ==
        PositionKind::rotary);
  CHECK(position(R"({"rope_theta": null, "rope_parameters": {"rope_type": "default"}})") ==
        PositionKind::none);
  CHECK(position(R"({"rope_theta": null})") == PositionKind::none);
  // A layer of gated DeltaNet: 4 heads with keys of 10 and values of 14 columns; a network of 80.
  constexpr std::int64_t kDelta = 2 * 48 * 40 + 3 * 48 * 56 + 2 * 48 * 4 + 4 * (40 + 40 + 56) + 4 +
                                  4 + 14 + 3 * 48 * 80 + 2 * 48;
  CHECK(added_with(kOlmoHybrid, R"({"layer_types": null, "num_hidden_layers": 2})") == -2 * kDelta);
  CHECK(added_with(kOlmoHybrid, R"({"layer_types": null, "num_hidden_layers": 3})") == -kDelta);
  CHECK(added_with(kOlmoHybrid, R"({"layer_types": null, "num_hidden_layers": 5})") == kDelta);
}

TEST_CASE("Nemotron-H's blocks may be words of layer_types") {
  CHECK(added_with("state_spaces/configs/nemotron_h.json",
                   R"({"hybrid_override_pattern": null,
                  "layer_types": ["mamba", "attention", "moe", "mamba"]})") == 0);
}

TEST_CASE("MiniMax rotates rotary_dim dimensions, or all of a head") {
  const auto rotary = [](const char* with) {
    return spec_with("state_spaces/configs/minimax.json", with).position.rope.rotary_dim;
  };
  CHECK(rotary(R"({"rotary_dim": 4})") == 4);
  CHECK(rotary(R"({"rotary_dim": 16})") == rotary("{}"));
}

TEST_CASE("Zamba2's class puts its shared blocks into nine of 54 layers") {
  constexpr const char* kFile = "state_spaces/configs/zamba2.json";
  // Mamba-2: 8 heads of 12, 2 groups of 10 states, convolutions of 4. A block of 4 heads of 24 on
  // two vectors side by side, with adapters of 6 for each layer, is there once.
  constexpr std::int64_t kInner = 96 + 2 * 2 * 10;
  constexpr std::int64_t kMamba =
      48 + 48 * (96 + kInner + 8) + 4 * kInner + kInner + 3 * 8 + 96 + 96 * 48;
  const std::string layers54 = R"({"num_hidden_layers": 54, "layers_block_type": null,
      "hybrid_layer_ids": )";
  const std::int64_t of_class = parameters_with(kFile, (layers54 + "null}").c_str());
  CHECK(of_class == parameters_with(kFile, (layers54 + "[6,12,18,24,30,36,42,47,51]}").c_str()));
  // Each use of the block: a projection back, and an adapter of the gated network.
  constexpr std::int64_t kUse = 48 * 48 + 6 * 48 + 2 * 80 * 6;
  CHECK(of_class - parameters_with(kFile, "{}") == 50 * kMamba + 7 * kUse);
}
