// Multimodal models and sparse or shared attention: parameters by part and caches against the
// reference classes. tests/data/towers: params.csv holds raw rows of published configs (verbatim in
// tests/data/wild), tiny.csv, kv_cache.csv and flops.csv those of tiny models, all recorded from
// transformers 5.16 on torch 2.6.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Graph graph_of(const std::filesystem::path& config) {
  return build_graph(spec_of(read_json(config)), {});
}

void check_published(const CsvRow& row, const std::filesystem::path& file) {
  const Graph graph = graph_of(file);
  const ParameterCount count = count_parameters(graph);
  const auto check = [&](const char* column, const Expr& counted) {
    CAPTURE(column);
    CHECK(counted.evaluate(graph.sizes) == number(row, column));
  };
  check("params_total", count.total);
  check("params_text", count.parts.text);
  check("params_vision", count.parts.vision);
  check("params_audio", count.parts.audio);
  check("params_projector", count.parts.projector);
  check("params_active", count.active);
}

}  // namespace

TEST_CASE("published multimodal configs have the reference's parameters, part by part") {
  std::size_t checked = 0;
  for (const CsvRow& row : read_csv(data_folder() / "towers/params.csv")) {
    CAPTURE(row.at("name"));
    const auto file = data_folder() / "wild" / (row.at("name") + ".config.json");
    check_published(row, file);
    ++checked;
  }
  CHECK(checked == 26);
}

TEST_CASE("tiny multimodal and hybrid models have the reference's parameters") {
  for (const CsvRow& row : read_csv(data_folder() / "towers/tiny.csv")) {
    CAPTURE(row.at("model"));
    const Graph graph =
        graph_of(data_folder() / "towers/tiny" / (row.at("model") + ".config.json"));
    CHECK(count_parameters(graph).total.evaluate(graph.sizes) == number(row, "params"));
  }
}

namespace {

std::filesystem::path tiny_config(const std::string& model) {
  return data_folder() / "towers/tiny" / (model + ".config.json");
}

Workload workload_of(const CsvRow& row, Phase phase) {
  Workload workload;
  workload.phase = phase;
  workload.batch_size = number(row, "batch");
  workload.dtype = DType::float32;
  workload.kv_dtype = DType::float32;
  return workload;
}

/// Models of sparse attention with an indexer.
bool has_indexer(const std::string& model) {
  return model == "deepseek_v32" || model == "glm_moe_dsa";
}

/// Models whose text model's operators are the reference's; the others have a tower or a chunked
/// scan.
bool has_all_operators(const std::string& model) {
  return model == "gemma4_text" || model == "gemma4_moe_text" || has_indexer(model);
}

}  // namespace

TEST_CASE("shared keys, experts beside a dense network and indexers have the reference's FLOPs") {
  for (const CsvRow& row : read_csv(data_folder() / "towers/flops.csv")) {
    if (!has_all_operators(row.at("model"))) continue;
    CAPTURE(row.at("model"));
    const bool decode = row.at("phase") == "decode_one_token";
    Workload workload = workload_of(row, decode ? Phase::decode : Phase::train);
    workload.seq_len = number(row, "seq");
    workload.past_len = number(row, "past");
    workload.latent = LatentAttention::naive;  // the reference caches the expanded heads
    const Counted counted =
        count(spec_of(read_json(tiny_config(row.at("model")))), workload, Convention::torch);
    CHECK(counted.figures.forward.matrix_flops == number(row, "total_matmul_flops"));
  }
}

TEST_CASE("caches of shared keys and of index keys have the reference's elements") {
  for (const CsvRow& row : read_csv(data_folder() / "towers/kv_cache.csv")) {
    const std::string model = row.at("model");
    if (!model.starts_with("gemma") && !has_indexer(model)) continue;
    CAPTURE(model);
    Workload workload = workload_of(row, Phase::prefill);
    workload.seq_len = number(row, "tokens");
    const ModelSpec spec = spec_of(read_json(tiny_config(model)));
    const Graph graph = build_graph(spec, graph_options(workload));
    KvCacheRequest request;
    request.policy = KvPolicy::hf_dynamic;  // w - 1 tokens of a window, as the reference keeps
    const auto use = kv_cache_use(spec, graph, workload, request).value();
    CHECK(use.reserved_bytes == 4 * number(row, "total_elements"));
  }
}

TEST_CASE("Phi-3 Vision has the parameters of Phi-3, CLIP's ViT-L/14 and a projector") {
  const nlohmann::json config = {{"model_type", "phi3_v"},
                                 {"architectures", {"Phi3VForCausalLM"}},
                                 {"hidden_size", 3072},
                                 {"intermediate_size", 8192},
                                 {"num_hidden_layers", 32},
                                 {"num_attention_heads", 32},
                                 {"num_key_value_heads", 32},
                                 {"vocab_size", 32064},
                                 {"img_processor",
                                  {{"image_dim_out", 1024},
                                   {"model_name", "openai/clip-vit-large-patch14-336"},
                                   {"name", "clip_vision_model"},
                                   {"num_img_tokens", 144}}}};
  const Graph graph = build_graph(spec_of(config), {});
  const ParameterCount count = count_parameters(graph);
  // Phi3ForCausalLM and CLIPVisionModel of transformers 5.24.
  CHECK(count.parts.text.evaluate(graph.sizes) == 3821079552);
  CHECK(count.parts.vision.evaluate(graph.sizes) == 303507456);
  // torch's Linear(4096, 3072) and Linear(3072, 3072); two trained patches of 4096.
  CHECK(count.parts.projector.evaluate(graph.sizes) == 22026240 + 2 * 4096);
}

TEST_CASE("a text of Llama 3.2 Vision skips the layers that read an image") {
  const ModelSpec spec = spec_of(read_json(tiny_config("mllama")));
  const std::vector<std::size_t> skipped{0, 1, 0, 1};  // its cross_attention_layers are 1 and 3
  CHECK(spec.decoder->variant_of_layer == skipped);
  CHECK(spec.decoder->attention_of(1).kind == AttentionKind::none);
  CHECK(spec.decoder->ffn_of(1).kind == FfnKind::gated);
  auto config = read_json(tiny_config("mllama"));
  for (const auto& layers : std::vector<nlohmann::json>{{1, 1}, {4}, {0, 1, 2, 3}}) {
    config["text_config"]["cross_attention_layers"] = layers;
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}

TEST_CASE("InternVL of OpenGVLab is refused where its code would differ") {
  const auto published =
      read_json(data_folder() / "golden/models/internvl_chat_images/config.json");
  for (const auto& change : std::vector<nlohmann::json>{
           {{"select_layer", -4}}, {{"use_llm_lora", 128}}, {{"force_image_size", 448}}}) {
    auto config = published;
    config.update(change);
    CAPTURE(change.dump());
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}

TEST_CASE("a tower that the config leaves out has its class's sizes, and a note says so") {
  const auto file = data_folder() / "wild/llama-4-maverick-17b-128e-instruct.config.json";
  CHECK(!spec_of(read_json(file)).assumptions.empty());
}

TEST_CASE("sizes of a text model that its wrapper fills in are named") {
  const auto spec = spec_of(read_json(data_folder() / "wild/llava.config.json"));
  REQUIRE(spec.assumptions.size() == 1);
  CHECK(spec.assumptions.front().find("hidden_size") != std::string::npos);
}

TEST_CASE("an unknown size in a vision_config is refused") {
  auto config = read_json(data_folder() / "towers/tiny/qwen3_vl.config.json");
  config["vision_config"]["num_register_tokens"] = 4;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

TEST_CASE("a text model of an unknown type is refused at text_config") {
  auto config = read_json(data_folder() / "towers/tiny/llava.config.json");
  config["text_config"]["model_type"] = "no-such-model";
  CHECK_THROWS_AS((void)spec_of(config), Error);
}

TEST_CASE("the config of a whole Omni model counts its thinker, and a note says so") {
  for (const char* const model : {"qwen2_5_omni", "qwen3_omni_moe"}) {
    auto config = read_json(tiny_config(model));
    CHECK(spec_of(config).assumptions.back() == "the talker and the vocoder are left out");
    config.erase("thinker_config");  // the class's own
    CHECK(spec_of(config).assumptions.front() ==
          "the config describes no thinker: the thinker has the default sizes");
  }
}

TEST_CASE("parts that a multimodal config leaves out are those of its class, and noted") {
  auto config = read_json(data_folder() / "towers/tiny/llava.config.json");
  config.erase("vision_config");
  const ModelSpec spec = spec_of(config);
  CHECK(spec.tower->stack.num_layers == 24);  // CLIP's ViT-L/14 of 336 pixels
  CHECK(spec.tower->embedding.image->image_size == 336);
  const auto notes = [](const ModelSpec& of, const std::string& words) {
    return std::ranges::any_of(of.assumptions, [&](const std::string& note) {
      return note.find(words) != std::string::npos;
    });
  };
  CHECK(notes(spec, "vision_config.hidden_size 1024"));
  CHECK(!notes(spec, "text_config.model_type"));
  config.erase("text_config");
  CHECK(notes(spec_of(config), "text_config.model_type llama"));
}

TEST_CASE("files of transformers 4 that say nothing of a head leave it to the text model") {
  auto config = read_json(data_folder() / "towers/tiny/internvl.config.json");
  config.erase("tie_word_embeddings");
  config["text_config"].erase("tie_word_embeddings");
  const auto is_tied = [&](const char* version) {
    config["transformers_version"] = version;
    const ModelSpec spec = spec_of(config);
    const bool noted = std::ranges::any_of(spec.assumptions, [](const std::string& note) {
      return note.find("tie_word_embeddings") != std::string::npos;
    });
    const bool tied = spec.head.language_model->weight == WeightSharing::shared;
    CHECK(noted == tied);
    return tied;
  };
  CHECK(!is_tied("4.57.1"));
  CHECK(is_tied("5.16.0"));
}

TEST_CASE("heads and networks by layer are refused where they do not fit the layers") {
  const auto laguna = read_json(data_folder() / "towers/tiny/laguna.config.json");
  for (const auto& change : std::vector<nlohmann::json>{
           {{"num_attention_heads_per_layer", {4, 6, 6}}},
           {{"num_attention_heads_per_layer", {4, 6, 5, 4}}},
           {{"mlp_layer_types", {"dense"}}},
           {{"mlp_layer_types", {"dense", "sparse", "routed", "sparse"}}}}) {
    auto config = laguna;
    config.update(change);
    CAPTURE(config.dump());
    CHECK_THROWS_AS((void)spec_of(config), Error);
  }
}

TEST_CASE("the bare class of a multimodal model has no head") {
  auto config = read_json(data_folder() / "towers/tiny/qwen3_vl.config.json");
  const auto total = [](const nlohmann::json& of) {
    const Graph graph = build_graph(spec_of(of), {});
    return count_parameters(graph).total.evaluate(graph.sizes);
  };
  const Integer with_head = total(config);
  config["architectures"] = {"Qwen3VLModel"};
  CHECK(total(config) == with_head - Integer{101} * 48);  // vocabulary · width
}

namespace {

/// The model's config among the tiny ones, else among those with outputs.
std::filesystem::path config_of_wrapper(const std::string& model) {
  if (std::filesystem::exists(tiny_config(model))) return tiny_config(model);
  const auto golden = data_folder() / "golden/models";
  for (const char* const suffix : {"_images", "_clips"}) {
    const auto file = golden / (model + suffix) / "config.json";
    if (std::filesystem::exists(file)) return file;
  }
  return golden / (model + "_whole") / "config.json";
}

}  // namespace

TEST_CASE("the head of a text model is tied as transformers' class ties it") {
  std::size_t checked = 0;
  for (const CsvRow& row : read_csv(data_folder() / "towers/tied_heads.csv")) {
    CAPTURE(row.at("model"));
    CAPTURE(row.at("whole"));
    CAPTURE(row.at("text"));
    auto config = read_json(config_of_wrapper(row.at("model")));
    const auto set = [&](nlohmann::json& place, const std::string& word) {
      place.erase("tie_word_embeddings");
      if (word != "absent") place["tie_word_embeddings"] = word == "true";
    };
    set(config, row.at("whole"));
    set(config["text_config"], row.at("text"));
    const ModelSpec spec = spec_of(config);
    REQUIRE(spec.head.language_model);
    CHECK((spec.head.language_model->weight == WeightSharing::shared) ==
          (row.at("tied") == "true"));
    ++checked;
  }
  CHECK(checked == 486);
}
