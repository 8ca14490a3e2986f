// Models as transformers saves them: keys and names of tensors that differ from published files,
// and classes without published ones. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <set>

#include "inspect/model_folder.h"
#include "support/data.h"
#include "weight_places.h"

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

namespace {

/// Names and shapes of MiMo-V2.5's towers as its files have them: one block of images with all keys
/// and one with a window, one layer of sound.
std::vector<TensorToWrite> mimo_towers() {
  std::vector<TensorToWrite> tensors{
      zeros("visual.patch_embed.proj.weight", {12, 3, 2, 4, 4}),
      zeros("visual.blocks.1.attn.sinks", {2}),
      zeros("visual.merger.ln_q.weight", {12}),
      zeros("visual.merger.mlp.0.weight", {48, 48}),
      zeros("visual.merger.mlp.2.weight", {32, 48}),
      zeros("speech_embeddings.0.weight", {9, 8}),
      zeros("speech_embeddings.1.weight", {7, 8}),
      zeros("audio_encoder.input_local_transformer.norm.weight", {8}),
      zeros("audio_encoder.projection.mlp.0.weight", {64, 16}),
      zeros("audio_encoder.projection.mlp.2.weight", {32, 64})};
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    tensors.push_back(zeros(name, std::move(shape)));
  };
  const auto add_biased = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  for (const char* const block : {"visual.blocks.0.", "visual.blocks.1."}) {
    const std::string name = block;
    add_biased(name + "attn.qkv", 16, 12);  // two heads of 4, and one for keys and values each
    add_biased(name + "attn.proj", 12, 8);
    add_biased(name + "mlp.gate_proj", 20, 12);
    add_biased(name + "mlp.up_proj", 20, 12);
    add_biased(name + "mlp.down_proj", 12, 20);
    add(name + "norm1.weight", {12});
    add(name + "norm2.weight", {12});
  }
  const std::string layer = "audio_encoder.input_local_transformer.layers.0.";
  for (const char* const projection : {"q_proj", "k_proj", "v_proj"}) {
    add_biased(layer + "self_attn." + projection, 6, 8);
  }
  add(layer + "self_attn.o_proj.weight", {8, 6});
  add(layer + "mlp.gate_proj.weight", {10, 8});
  add(layer + "mlp.up_proj.weight", {10, 8});
  add(layer + "mlp.down_proj.weight", {8, 10});
  add(layer + "input_layernorm.weight", {8});
  add(layer + "post_attention_layernorm.weight", {8});
  return tensors;
}

}  // namespace

TEST_CASE("every tensor of MiMo-V2.5's towers has an owner, by the names of its files") {
  const auto folder = data_folder() / "families/mimo_v2";
  nlohmann::json config = read_json(folder / "config.json");
  config["vision_config"] = {{"depth", 2},
                             {"fullatt_block_indexes", {0}},
                             {"hidden_size", 12},
                             {"in_chans", 3},
                             {"intermediate_size", 20},
                             {"num_heads", 2},
                             {"num_key_value_heads", 1},
                             {"out_hidden_size", 32},
                             {"patch_size", 4},
                             {"qk_channels", 4},
                             {"use_sink", true}};
  config["audio_config"] = {
      {"audio_channels", 2},     {"group_size", 2},           {"input_local_attn_heads", 2},
      {"input_local_dim", 8},    {"input_local_head_dim", 3}, {"input_local_intermediate_size", 10},
      {"input_local_layers", 1}, {"out_hidden_size", 32},     {"speech_vocab_size", "9-7"}};
  std::vector<TensorToWrite> tensors = mimo_towers();
  for (const auto& [name, shape] : safetensors_shapes(folder / "model.safetensors")) {
    tensors.push_back(zeros(name, shape));
  }
  tensors.push_back(zeros("model.mtp.layers.0.eh_proj.weight", {32, 64}));
  const Inspection inspection = inspect_folder(config, tensors);
  REQUIRE(inspection.reconciliation.has_value());
  CHECK(problems_of(inspection).empty());
  const std::vector<std::string> extras = extras_of(inspection);
  CHECK(extras.size() == 2);  // biases of routers, and the layer for drafts
  config["audio_config"]["speech_vocab_size"] = "9-x";
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("speech_vocab_size") != std::string::npos);
}

namespace {

/// Preferred names of all tensors of a config's weights.
std::set<std::string> names_of_weights(const nlohmann::json& config) {
  const ModelSpec spec = spec_of(config);
  const Graph graph = build_graph(spec, {});
  const detail::WeightPlaces places(spec, graph, detail::name_table(spec));
  std::set<std::string> names;
  for (const Weight& weight : graph.weights) {
    const auto layers = weight.repeat.evaluate_int64(graph.sizes);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const auto alternatives = places.of(weight, layer);
      for (const detail::WeightPlace& place : alternatives.front()) names.insert(place.name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("the weights of Phi-4 multimodal are as many tensors as Microsoft's files have") {
  const std::set<std::string> names =
      names_of_weights(read_json(data_folder() / "published/phi-4-multimodal.config.json"));
  // The headers of its files have 2,047 tensors: two are a spectrogram's means and deviations, and
  // 16 are those of the image encoder's last layer, which no image reads: a weight of its own in
  // the graph, with the number of the first.
  CHECK(names.size() == 2047 - 2 - 16);
  for (const char* const name :
       {"layers.31.self_attn.qkv_proj.base_layer.weight",
        "layers.0.mlp.down_proj.lora_B.speech.weight",
        "layers.0.self_attn.o_proj.lora_A.vision.weight", "glb_GN", "sub_GN",
        "img_projection.2.bias", "audio_projection.vision.0.weight",
        "encoder.encoders.23.feed_forward_out.net.0.linear.weight",
        "encoder.encoders.0.self_attn.linear_out.bias"}) {
    CAPTURE(std::string(name));
    CHECK(names.contains(name));
  }
}
