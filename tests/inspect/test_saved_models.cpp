// Models as transformers saves them: keys and names of tensors that differ from published files,
// and classes without published ones. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include "inspect/model_folder.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

TEST_CASE("models that transformers saved are read, and every tensor has an owner") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "saved")) {
    CAPTURE(entry.path());
    const auto saved = read_json(entry.path());
    if (!saved.contains("tensors")) continue;
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, shape] : saved.at("tensors").items()) {
      tensors.push_back(zeros(name, shape.get<std::vector<std::int64_t>>()));
    }
    const Inspection inspection = inspect_folder(saved.at("config"), tensors);
    REQUIRE(inspection.reconciliation.has_value());
    CHECK(problems_of(inspection).empty());
    ++models;
  }
  CHECK(models == 12);
}

TEST_CASE("published configs that transformers saved again have the parameters of its classes") {
  for (const char* const name : {"kimi_linear_published", "mimo_v2_flash_published"}) {
    CAPTURE(std::string(name));
    const auto saved = read_json(data_folder() / "saved" / (std::string(name) + ".json"));
    const ModelSpec spec = spec_of(saved.at("config"));
    CHECK(parameters_on(build_graph(spec, {})) == saved.at("parameters").get<std::int64_t>());
  }
}

TEST_CASE("MiMo's windowed layers keep their own RoPE when transformers saves them again") {
  const auto saved = read_json(data_folder() / "saved/mimo_v2_flash_published.json");
  const ModelSpec spec = spec_of(saved.at("config"));
  CHECK(spec.position.rope.theta == 5'000'000);
  std::size_t windowed = 0;
  for (const LayerVariant& variant : spec.decoder->variants) {
    if (variant.self_attention.window.kind != WindowKind::sliding) continue;
    REQUIRE(variant.self_attention.rope.has_value());
    CHECK(variant.self_attention.rope->theta == 10'000);
    CHECK(variant.self_attention.num_key_value_heads == 8);
    ++windowed;
  }
  CHECK(windowed > 0);
}
