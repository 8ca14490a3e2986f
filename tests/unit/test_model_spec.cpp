// Readers of model families: choices that figures hang on.
#include <doctest/doctest.h>

#include <fstream>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

nlohmann::json tiny(const std::string& name, const std::string& key = "config") {
  return read_json(data_folder() / "golden/tiny" / (name + ".json")).at(key);
}

}  // namespace

TEST_CASE("the class named in architectures decides heads and poolers") {
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

TEST_CASE("T5 v1.1 keeps its own head in the configs of both generations of transformers") {
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

TEST_CASE("rotary scaling is read from the keys of both generations of transformers") {
  for (const char* const key : {"config", "config_v5"}) {
    CAPTURE(key);
    const RopeSpec rope = spec_of(tiny("llama3_rope", key)).position.rope;
    CHECK(rope.scaling == RopeScalingKind::llama3);
    CHECK(rope.original_max_position_embeddings == 32);
  }
  CHECK(spec_of(tiny("llama_linear_rope")).position.rope.factor == 4);
}

TEST_CASE("the head size is read, not taken for hidden size over heads") {
  const AttentionSpec attention = spec_of(tiny("llama_head_dim")).decoder->self_attention;
  CHECK(attention.head_dim == 16);
  CHECK(attention.num_attention_heads == 4);
}

TEST_CASE("presets are found by name and by alias, all different") {
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

TEST_CASE("a model is read from a file or a folder, named after its folder") {
  const auto folder = std::filesystem::temp_directory_path() / "headroom-test-model";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << tiny("llama").dump();
  CHECK(load_model(folder.string()).spec.name == "headroom-test-model");
  CHECK(load_model((folder / "config.json").string()).spec.name == "headroom-test-model");
  CHECK(load_model((folder / "").string()).spec.name == "headroom-test-model");
  std::filesystem::remove_all(folder);
}
