// Raw configs from public repositories, counted by the reference classes: every file of a claimed
// family is read, and its parameters equal the class's total. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <set>

#include "family.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

struct WildConfig {
  std::string name;
  std::filesystem::path file;
  std::int64_t parameters = 0;  ///< 0: unknown
};

/// Configs of `folder` whose family headroom claims, with their totals in params.csv.
std::vector<WildConfig> claimed_configs(const std::filesystem::path& folder) {
  std::vector<WildConfig> configs;
  for (const CsvRow& row : read_csv(folder / "params.csv")) {
    const auto file = folder / (row.at("name") + ".config.json");
    if (!std::filesystem::exists(file)) continue;
    const std::string model_type = read_python_json(file).value("model_type", "");
    if (detail::find_family(model_type) == nullptr) continue;
    configs.push_back({row.at("name"), file, number(row, "params_total")});
  }
  return configs;
}

std::vector<WildConfig> wild_configs() {
  std::vector<WildConfig> configs = claimed_configs(data_folder() / "wild");
  const auto beside = data_folder() / "../../../shared/wild";
  if (!std::filesystem::exists(beside / "params.csv")) return configs;
  std::set<std::string> known;
  for (const WildConfig& config : configs) known.insert(config.name);
  for (WildConfig& config : claimed_configs(beside)) {
    if (!known.contains(config.name)) configs.push_back(std::move(config));
  }
  return configs;
}

/// The class is the whole model, with the talker that headroom leaves out.
bool has_talker(const std::string& type) {
  return type == "qwen2_5_omni" || type == "qwen3_omni_moe";
}

}  // namespace

TEST_CASE("default configs, as transformers 5 writes them, have the parameters of their classes") {
  const auto folder = data_folder() / "defaults";
  std::size_t counted = 0;
  for (const CsvRow& row : read_csv(folder / "params.csv")) {
    const auto file = folder / (row.at("model_type") + ".config.json");
    CAPTURE(file.string());
    ModelSpec spec;
    REQUIRE_NOTHROW(spec = read_model_spec(read_file(file), file.string(), row.at("model_type")));
    const Graph graph = build_graph(spec, {});
    CHECK(count_parameters(graph).total.evaluate(graph.sizes) == number(row, "params_total"));
    CHECK(spec.unread_keys.empty());
    ++counted;
  }
  CHECK(counted >= 5);
}

TEST_CASE("a config of a model type alone has the parameters of its class's defaults") {
  std::size_t counted = 0;
  for (const CsvRow& row : read_csv(data_folder() / "defaults/types.csv")) {
    const std::string& type = row.at("model_type");
    if (has_talker(type)) continue;
    CAPTURE(row.at("model_class"));
    const nlohmann::json config{{"model_type", type}, {"architectures", {row.at("model_class")}}};
    ModelSpec spec;
    REQUIRE_NOTHROW(spec = read_model_spec(config.dump(), "config.json", type));
    const Graph graph = build_graph(spec, {});
    CHECK(count_parameters(graph).total.evaluate(graph.sizes) == number(row, "params_total"));
    ++counted;
  }
  CHECK(counted >= 250);
}

TEST_CASE("drafts for speculative decoding have the parameters of their published classes") {
  const auto folder = data_folder() / "drafts";
  std::size_t counted = 0;
  for (const CsvRow& row : read_csv(folder / "params.csv")) {
    CAPTURE(row.at("name"));
    const auto file = folder / (row.at("name") + ".config.json");
    ModelSpec spec;
    REQUIRE_NOTHROW(spec = read_model_spec(read_file(file), file.string(), row.at("name")));
    CHECK(spec.unread_keys.empty());
    CHECK(spec.architecture == row.at("model_class"));
    const Graph graph = build_graph(spec, {});
    CHECK(count_parameters(graph).total.evaluate(graph.sizes) == number(row, "params_total"));
    ++counted;
  }
  CHECK(counted >= 45);
}

TEST_CASE(
    "a draft of Llama's class, or with a nested config, has the parameters of one of its own "
    "class") {
  const auto file = data_folder() / "drafts/qwen3-8b-eagle3.config.json";
  nlohmann::json layers = read_json(file);
  const auto parameters_of = [](const nlohmann::json& config) {
    const Graph graph = build_graph(spec_of(config), {});
    return count_parameters(graph).total.evaluate(graph.sizes);
  };
  const Integer flat = parameters_of(layers);
  nlohmann::json nested{{"architectures", {"Eagle3Speculator"}},
                        {"speculators_model_type", "eagle3"},
                        {"draft_vocab_size", layers.at("draft_vocab_size")},
                        {"norm_before_residual", true}};
  layers["architectures"] = {"LlamaForCausalLM"};  // of the first published drafts
  CHECK(parameters_of(layers) == flat);
  layers.erase("draft_vocab_size");
  nested["transformer_layer_config"] = layers;
  CHECK(parameters_of(nested) == flat);
}

TEST_CASE("EAGLE-3's norm before its projection, and as many states as it names, are counted") {
  // Shapes: fc [hidden, states · hidden], input_norm [states · hidden], q_norm and k_norm [128]
  // (vllm-project/speculators, models/eagle3/core.py).
  constexpr std::int64_t kWidth = 4096;
  const nlohmann::json plain = read_json(data_folder() / "drafts/qwen3-8b-eagle3.config.json");
  const auto parameters_of = [](const nlohmann::json& config) {
    const Graph graph = build_graph(spec_of(config), {});
    return count_parameters(graph).total.evaluate(graph.sizes);
  };
  const Integer total = parameters_of(plain);
  nlohmann::json config = plain;
  config["norm_before_fc"] = true;
  CHECK(parameters_of(config) == total + Integer{3 * kWidth});
  config["eagle_aux_hidden_state_layer_ids"] = {1, 9, 17, 25, 33};
  CHECK(parameters_of(config) == total + Integer{5 * kWidth + 2 * kWidth * kWidth});
  const nlohmann::json noted{{"norm_before_fc", true},
                             {"eagle_aux_hidden_state_layer_ids", {1, 9, 17, 25, 33}}};
  nlohmann::json beside = plain;
  beside["eagle_config"] = noted;
  CHECK(parameters_of(beside) == parameters_of(config));
  nlohmann::json nested{{"architectures", {"Eagle3Speculator"}},
                        {"draft_vocab_size", plain.at("draft_vocab_size")},
                        {"transformer_layer_config", plain}};
  nested["transformer_layer_config"].erase("draft_vocab_size");
  nested["transformer_layer_config"]["model_type"] = "qwen3";
  CHECK(parameters_of(nested) == total + Integer{2 * 128});
  nested["transformer_layer_config"]["model_type"] = "mistral";
  CHECK(refusal_of([&] { (void)spec_of(nested); }).find("model_type") != std::string::npos);
}

TEST_CASE("a draft whose heads exceed 64 bits is refused") {
  nlohmann::json config = read_json(data_folder() / "drafts/qwen3-8b-eagle3.config.json");
  for (const char* const key : {"head_dim", "num_attention_heads", "num_key_value_heads"}) {
    config[key] = std::int64_t{1} << 40;
  }
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("64 bits") != std::string::npos);
}

TEST_CASE("BLIP-2 in front of T5, whose encoder would read the images, is counted") {
  nlohmann::json config = read_json(data_folder() / "golden/models/blip2_images/config.json");
  config["text_config"] = {{"model_type", "t5"}, {"d_model", 48},    {"d_kv", 8},
                           {"d_ff", 72},         {"num_layers", 2},  {"num_decoder_layers", 3},
                           {"num_heads", 4},     {"vocab_size", 101}};
  const ModelSpec spec = spec_of(config);
  const Graph graph = build_graph(spec, {});
  // Blip2ForConditionalGeneration of transformers 5.24, on the meta device.
  CHECK(count_parameters(graph).total.evaluate(graph.sizes) == Integer{156240});
  CHECK_FALSE(spec.not_run.empty());
  WorkloadRequest images;
  images.images = 1;
  CHECK(refusal_of([&] { (void)resolve(images, spec); }).find("images") != std::string::npos);
}

TEST_CASE("DaViT's norms are as wide as the rows that they read") {
  nlohmann::json config = read_json(data_folder() / "towers/tiny/florence2.config.json");
  config["vision_config"]["patch_prenorm"] = {true, true, false, false};
  const Graph graph = build_graph(spec_of(config), {});
  // Florence2ForConditionalGeneration of transformers 5.24, on the meta device.
  CHECK(count_parameters(graph).total.evaluate(graph.sizes) == Integer{189686});
}

TEST_CASE("parameters of raw published configs equal the reference class's total") {
  std::size_t counted = 0;
  for (const WildConfig& wild : wild_configs()) {
    CAPTURE(wild.name);
    ModelSpec spec;
    REQUIRE_NOTHROW(spec = read_model_spec(read_file(wild.file), wild.file.string(), wild.name));
    if (wild.parameters == 0) continue;
    const Graph graph = build_graph(spec, {});
    CHECK(count_parameters(graph).total.evaluate(graph.sizes) == wild.parameters);
    ++counted;
  }
  CHECK(counted >= 50);
}
