// Random configs of all families: each is refused with a clear error, or all its properties hold.
// `headroom_property_models --configs 1000000` checks more of them.
#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "model_properties.h"
#include "support/data.h"
#include "support/sanitized.h"

using namespace headroom::test;

TEST_CASE("published tiny configs of many families keep all properties") {
  const RandomConfigs configs(data_folder());
  std::set<std::string> types;
  int run = 0;
  for (std::size_t i = 0; i < configs.bases().size(); i += kModelStep) {
    const nlohmann::json& config = configs.bases()[i];
    CAPTURE(config.dump());
    const CheckedModel checked = check_model(config, 1);
    CAPTURE(checked.refusal);
    CHECK(checked.reached != Reached::refused);
    for (const std::string& broken : checked.findings.broken()) FAIL_CHECK(broken);
    types.insert(config.at("model_type"));
    run += checked.reached == Reached::run ? 1 : 0;
  }
  CHECK(types.size() > (kSanitized ? 15 : 100));
  CHECK(run > (kSanitized ? 8 : 100));
}

TEST_CASE("configs with random changes are refused with a message, or keep all properties") {
  const RandomConfigs configs(data_folder());
  int accepted = 0;
  constexpr std::uint64_t kConfigs = 150;
  for (std::uint64_t seed = 0; seed < kConfigs; ++seed) {
    const nlohmann::json config = configs.config(seed);
    CAPTURE(seed);
    CAPTURE(config.dump());
    const CheckedModel checked = check_model(config, seed);
    for (const std::string& broken : checked.findings.broken()) FAIL_CHECK(broken);
    accepted += checked.reached == Reached::refused ? 0 : 1;
  }
  // Most changes keep a config valid; otherwise they would test the reader alone.
  CHECK(accepted > static_cast<int>(kConfigs) / 2);
}

TEST_CASE(
    "tokens beyond a table of per-layer embeddings read its first row, and no memory behind it") {
  std::ifstream stream(data_folder() / "towers/tiny/gemma3n_text.config.json");
  auto config = nlohmann::json::parse(stream);
  config["vocab_size_per_layer_input"] = 8;  // of 101 words
  const CheckedModel checked = check_model(config, 1);
  CHECK(checked.reached == Reached::run);
  for (const std::string& broken : checked.findings.broken()) FAIL_CHECK(broken);
}

TEST_CASE("a Gemma 3n whose layers have no input of their own is refused") {
  std::ifstream stream(data_folder() / "towers/tiny/gemma3n_text.config.json");
  auto config = nlohmann::json::parse(stream);
  config["hidden_size_per_layer_input"] = 0;
  const CheckedModel checked = check_model(config, 1);
  CHECK(checked.refusal.find("hidden_size_per_layer_input") != std::string::npos);
  for (const std::string& broken : checked.findings.broken()) FAIL_CHECK(broken);
}
