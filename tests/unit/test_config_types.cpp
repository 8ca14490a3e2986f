// Types of weights that configs state or leave out, and keys of published configs that change no
// figure.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

json preset_config(const std::string& name) {
  return json::parse(find_preset(name).value().json).at("config");
}

StoredWeights stored(const json& config) {
  const ModelSpec spec = spec_of(config);
  return stored_weights(spec, build_graph(spec, {}));
}

bool notes_float32(const json& config) {
  return std::ranges::any_of(stored(config).notes, [](const std::string& note) {
    return note.find("states no type of its weights") != std::string::npos;
  });
}

Integer values_of(const json& config) { return parameters_on(build_graph(spec_of(config), {})); }

}  // namespace

TEST_CASE("presets state the type of the copies of their files") {
  struct Copied {
    std::string preset;
    std::string copy;  ///< in tests/data/wild
  };
  for (const Copied& copied :
       {Copied{"gemma-3-4b", "gemma-3-4b-pt-6bit-mlx"},
        Copied{"gemma-3-27b", "gemma-3-27b-dippymodel"}, Copied{"stablelm-3b-4e1t", "stablelm"}}) {
    CAPTURE(copied.preset);
    const json published = read_json(data_folder() / "wild" / (copied.copy + ".config.json"));
    const json config = preset_config(copied.preset);
    CHECK(config.at("torch_dtype") == published.at("torch_dtype"));
    CHECK(stored(config).bytes == 2 * values_of(config));
  }
}

TEST_CASE("a large decoder's config without a type is noted, as its weights may be half as large") {
  json config = preset_config("llama-3-8b");
  CHECK_FALSE(notes_float32(config));
  config.erase("torch_dtype");
  CHECK(notes_float32(config));
  CHECK(stored(config).bytes == 4 * values_of(config));
  config["dtype"] = "float32";
  CHECK_FALSE(notes_float32(config));
  CHECK_FALSE(notes_float32(preset_config("gpt2")));
  CHECK_FALSE(notes_float32(preset_config("bert-large-uncased")));
}

// PreTrainedConfig.__post_init__, transformers 5.24: "If both are provided, keep `dtype`".
// Published in MXFP4 without a type of its other weights (openai/gpt-oss-20b), which are bfloat16.
TEST_CASE("a quantised config that states no type runs in bfloat16, as engines run it") {
  const ModelSpec quantised = load_model("gpt-oss-20b").spec;
  CHECK(quantised.torch_dtype.empty());
  CHECK(resolve(WorkloadRequest{}, quantised).dtype == DType::bfloat16);
  const ModelSpec plain = load_model("gpt2").spec;
  CHECK(plain.torch_dtype.empty());
  CHECK(resolve(WorkloadRequest{}, plain).dtype == DType::float32);
}

TEST_CASE("dtype counts where its former name torch_dtype differs, and a note says so") {
  json config = preset_config("llama-3-8b");
  config["torch_dtype"] = "torch.bfloat16";
  config["dtype"] = "bfloat16";
  CHECK(spec_of(config).torch_dtype == "bfloat16");
  CHECK(spec_of(config).assumptions.empty());
  config["dtype"] = "float32";
  const ModelSpec spec = spec_of(config);
  CHECK(spec.torch_dtype == "float32");
  REQUIRE(spec.assumptions.size() == 1);
  CHECK(spec.assumptions.front().find("torch_dtype") != std::string::npos);
}

// snowflake-arctic-embed-m-v2.0 and jina-embeddings state the lengths that their vectors can be cut
// to, which vLLM reads for its requests only.
TEST_CASE("lengths that embeddings may be cut to change nothing") {
  json config = read_json(data_folder() / "families/gte/config.json");
  const Integer before = values_of(config);
  config["matryoshka_dimensions"] = {256};
  CHECK(values_of(config) == before);
  CHECK(spec_of(config).unread_keys.empty());
}

// An attribute of the class that tencent/Hunyuan-A13B-Instruct publishes, for images.
TEST_CASE("Hunyuan's pooling of images changes nothing in its text models") {
  json config = read_json(data_folder() / "golden/models/hunyuan_v1_moe/config.json");
  const Integer before = values_of(config);
  config["anyres_pooling_size"] = 2;
  CHECK(values_of(config) == before);
}

// transformers 4.57 and 5.24: WhisperForConditionalGeneration of whisper-tiny on the meta device.
TEST_CASE("an untied Whisper has a head of its own, and no table of words in its encoder") {
  json config = preset_config("whisper-tiny");
  CHECK(values_of(config) == 37'760'640);
  config["tie_word_embeddings"] = false;
  CHECK(values_of(config) == 57'676'800);
}

// transformers 5.24: CwmForCausalLM and DebertaV2Model of these configs on the meta device.
TEST_CASE("CWM has the biases of its networks, and DeBERTa v2 the norm of a table that it lacks") {
  json cwm = read_json(data_folder() / "families/cwm/config.json");
  CHECK(values_of(cwm) == 18'552);
  cwm["mlp_bias"] = true;
  CHECK(values_of(cwm) == 18'864);
  json deberta = read_json(data_folder() / "golden/models/deberta_v2/config.json");
  CHECK(values_of(deberta) == 58'032);
  deberta["relative_attention"] = false;
  CHECK(values_of(deberta) == 57'264);
}

// transformers 5.24: BailingHybridForCausalLM on the meta device.
TEST_CASE("Ling's delta layers have the heads that a config of transformers names") {
  json config = read_json(data_folder() / "families/bailing_hybrid/config.json");
  CHECK(values_of(config) == 85'520);
  config["linear_num_heads"] = 2;
  CHECK(values_of(config) == 78'924);
}
