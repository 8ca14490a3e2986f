// Folders in other layouts than Hugging Face's: read as what they hold, or refused by what they
// are.
#include <doctest/doctest.h>

#include <algorithm>

#include "checkpoint/weight_files.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "safetensors_writer.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

namespace fs = std::filesystem;
using checkpoint::StoredType;
using checkpoint::TensorToWrite;
using nlohmann::json;

/// Writes the JSON into a folder of this name.
void write_json(const TempFolder& root, const std::string& folder, const std::string& file,
                const json& content) {
  fs::create_directories(root / folder);
  write_file((root / folder) / file, content.dump());
}

ParameterCount count_of(const Model& model, Graph& graph) {
  graph = build_graph(model.spec, {});
  return count_parameters(graph);
}

Integer parameters_at(const std::string& path) {
  return parameters_on(build_graph(load_model(path).spec, {}));
}

Integer parameters_of(const json& params) {
  const TempFolder root;
  write_json(root, "model", "params.json", params);
  return parameters_at((root / "model").string());
}

json llama_3_8b() {
  return {{"dim", 4096},      {"n_layers", 32},         {"n_heads", 32},
          {"n_kv_heads", 8},  {"vocab_size", 128256},   {"multiple_of", 1024},
          {"norm_eps", 1e-5}, {"rope_theta", 500000.0}, {"ffn_dim_multiplier", 1.3}};
}

json mistral_7b() {
  return {{"dim", 4096},         {"n_layers", 32},         {"head_dim", 128},
          {"hidden_dim", 14336}, {"n_heads", 32},          {"n_kv_heads", 8},
          {"norm_eps", 1e-5},    {"sliding_window", 4096}, {"vocab_size", 32000}};
}

/// 78,144 parameters: tables of 2·128·64; per layer attention 3·64² and MLP 3·64·96 with norms
/// 2·64; a norm of 64.
json small_llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},         {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"num_hidden_layers", 2},    {"intermediate_size", 96},
          {"vocab_size", 128},        {"torch_dtype", "bfloat16"}, {"max_position_embeddings", 32}};
}

TensorToWrite zeros(std::string name, std::vector<std::int64_t> shape) {
  const std::size_t bytes = checkpoint::stored_bytes(StoredType::float32, shape).value();
  return {std::move(name), StoredType::float32, std::move(shape), std::vector<std::byte>(bytes)};
}

json adapter_config() {
  return {{"peft_type", "LORA"},
          {"base_model_name_or_path", "../base"},
          {"r", 4},
          {"lora_alpha", 8},
          {"target_modules", {"q_proj"}}};
}

/// A base model and an adapter of rank 4 on the queries of its two layers.
void write_adapter(const TempFolder& root, const json& config) {
  write_json(root, "base", "config.json", small_llama());
  write_json(root, "adapter", "adapter_config.json", config);
  std::vector<TensorToWrite> tensors;
  for (const char* const layer : {"0", "1"}) {
    const std::string query =
        "base_model.model.model.layers." + std::string(layer) + ".self_attn.q_proj.";
    tensors.push_back(zeros(query + "lora_A.weight", {4, 64}));
    tensors.push_back(zeros(query + "lora_B.weight", {64, 4}));
  }
  checkpoint::write_safetensors((root / "adapter") / "adapter_model.safetensors", tensors);
}

std::string refusal_at(const fs::path& path) {
  return refusal_of([&] { (void)load_model(path.string()); });
}

}  // namespace

// Transformers 5 stores T5 v1.1 models that tie their head without it.
TEST_CASE("a head that T5's files lack is the word embeddings, and one that they have is not") {
  const TempFolder root;
  json config = read_json(data_folder() / "golden/tiny/t5_v1_1.json").at("config");
  write_json(root, "t5", "config.json", config);
  const std::vector<std::int64_t> table{config.at("vocab_size"), config.at("d_model")};
  const auto count_with = [&](const std::vector<TensorToWrite>& tensors) {
    checkpoint::write_safetensors((root / "t5") / "model.safetensors", tensors);
    return parameters_at((root / "t5").string());
  };
  const Integer alone = parameters_at((root / "t5").string());
  const std::vector<TensorToWrite> tied{zeros("shared.weight", table)};
  CHECK(count_with(tied) == alone - table[0] * table[1]);
  CHECK(count_with({zeros("shared.weight", table), zeros("lm_head.weight", table)}) == alone);
}

TEST_CASE("Meta's params.json gives the published parameters") {
  CHECK(parameters_of(llama_3_8b()) == Integer{8030261248});
  // Llama 2 70B.
  CHECK(parameters_of({{"dim", 8192},
                       {"multiple_of", 4096},
                       {"ffn_dim_multiplier", 1.3},
                       {"n_heads", 64},
                       {"n_kv_heads", 8},
                       {"n_layers", 80},
                       {"norm_eps", 1e-5},
                       {"vocab_size", 32000}}) == Integer{68976648192});
}

// The published totals; their params.json has no key for the tied head.
TEST_CASE("Meta's params.json of Llama 3.2 gives a tied head") {
  json params{{"dim", 2048},          {"n_layers", 16},
              {"n_heads", 32},        {"n_kv_heads", 8},
              {"multiple_of", 256},   {"ffn_dim_multiplier", 1.5},
              {"norm_eps", 1e-5},     {"rope_theta", 500000.0},
              {"vocab_size", 128256}, {"use_scaled_rope", true}};
  CHECK(parameters_of(params) == Integer{1235814400});
  params.update({{"dim", 3072}, {"n_layers", 28}, {"n_heads", 24}, {"ffn_dim_multiplier", 1.0}});
  CHECK(parameters_of(params) == Integer{3212749824});
  json of_3_1 = llama_3_8b();
  of_3_1["use_scaled_rope"] = true;
  CHECK(parameters_of(of_3_1) == Integer{8030261248});
}

TEST_CASE("Mistral's params.json gives the published parameters") {
  CHECK(parameters_of(mistral_7b()) == Integer{7241732096});
  json mixtral = mistral_7b();
  mixtral.erase("sliding_window");
  mixtral["moe"] = {{"num_experts_per_tok", 2}, {"num_experts", 8}};
  CHECK(parameters_of(mixtral) == Integer{46702792704});
}

TEST_CASE("a params.json that leaves the vocabulary to its tokenizer, or has a tower, is refused") {
  const TempFolder root;
  json params = llama_3_8b();
  params["vocab_size"] = -1;
  write_json(root, "meta", "params.json", params);
  CHECK(refusal_at(root / "meta").find("vocab_size: is -1") != std::string::npos);
  params = mistral_7b();
  params["vision_encoder"] = {{"hidden_size", 1024}};
  write_json(root, "pixtral", "params.json", params);
  CHECK(refusal_at(root / "pixtral").find("vision_encoder: is not read") != std::string::npos);
  params = llama_3_8b();
  params["n_expert_layers"] = 3;
  write_json(root, "odd", "params.json", params);
  CHECK(refusal_at(root / "odd").find("n_expert_layers") != std::string::npos);
}

// Voxtral; Ministral 3 in FP8; Mistral Large 3; Codestral Mamba.
TEST_CASE("a params.json of another kind of model is refused by what it has") {
  const TempFolder root;
  const auto refusal_with = [&](const char* key, const json& value) {
    json params = mistral_7b();
    params[key] = value;
    write_json(root, key, "params.json", params);
    return refusal_at(root / key);
  };
  CHECK(refusal_with("multimodal", {{"whisper_model_args", json::object()}})
            .find("multimodal: is not read from params.json") != std::string::npos);
  CHECK(refusal_with("quantization", {{"qformat_weight", "fp8_e4m3"}})
            .find("quantization: is not read") != std::string::npos);
  CHECK(refusal_with("kv_lora_rank", 512).find("kv_lora_rank: is not read") != std::string::npos);
  write_json(root, "mamba", "params.json",
             {{"dim", 4096}, {"n_layers", 64}, {"vocab_size", 32768}, {"model_type", "mamba"}});
  CHECK(refusal_at(root / "mamba").find("is \"mamba\", which is not read") != std::string::npos);
}

TEST_CASE("a LoRA folder is its base model and the adapter's weights, in their own type") {
  const TempFolder root;
  write_adapter(root, adapter_config());
  const Model model = load_model((root / "adapter").string());
  Graph graph;
  const ParameterCount count = count_of(model, graph);
  CHECK(count.parts.adapter.evaluate(graph.sizes) == Integer{2 * 2 * 4 * 64});
  CHECK(count.total.evaluate(graph.sizes) == Integer{78144 + 1024});
  // The base model is bfloat16, the adapter float32.
  CHECK(stored_weights(model.spec, graph).bytes == Integer{78144 * 2 + 1024 * 4});
  REQUIRE_FALSE(model.spec.assumptions.empty());
  CHECK(model.spec.assumptions.back().find("rank 4 on q_proj: 4096 B more") != std::string::npos);
}

TEST_CASE("training a LoRA folder counts all weights as trained, and says so") {
  const TempFolder root;
  write_adapter(root, adapter_config());
  const auto notes_in = [&](Phase phase, const std::filesystem::path& folder) {
    WorkloadRequest request;
    request.phase = phase;
    const ModelSpec spec = load_model(folder.string()).spec;
    std::string text;
    for (const std::string& note : notes_on(resolve(request, spec), spec)) text += note + "\n";
    return text;
  };
  const std::string training = notes_in(Phase::train, root / "adapter");
  CHECK(training.find("counts all weights as trained") != std::string::npos);
  CHECK(training.find("outside the text model") == std::string::npos);
  const std::string prompt = notes_in(Phase::prefill, root / "adapter");
  CHECK(prompt.find("counts all weights") == std::string::npos);
  CHECK(prompt.find("the adapter counts as parameters and weights only") != std::string::npos);
  CHECK(notes_in(Phase::train, root / "base").find("counts all weights") == std::string::npos);
}

TEST_CASE("an adapter's base model may be a preset") {
  const TempFolder root;
  json config = adapter_config();
  config["base_model_name_or_path"] = "tinyllama-1.1b";
  write_adapter(root, config);
  CHECK(parameters_at((root / "adapter").string()) == Integer{1100048384 + 1024});
}

TEST_CASE("an adapter that cannot be read is refused by what it is") {
  const TempFolder root;
  json config = adapter_config();
  config["base_model_name_or_path"] = "org/no-such-model";
  write_adapter(root, config);
  CHECK(refusal_at(root / "adapter").find("LoRA adapter whose base model cannot be read") !=
        std::string::npos);
  // QLoRA's base is a quantised copy, which is no preset.
  config["base_model_name_or_path"] = "unsloth/Meta-Llama-3.1-8B-bnb-4bit";
  write_json(root, "adapter", "adapter_config.json", config);
  try {
    (void)load_model((root / "adapter").string());
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.hint().ends_with("did you mean llama-3.1-8b, the model before it was quantised?"));
  }
  config = adapter_config();
  config["peft_type"] = "PROMPT_TUNING";
  write_json(root, "adapter", "adapter_config.json", config);
  CHECK(refusal_at(root / "adapter").find("PROMPT_TUNING") != std::string::npos);
  config = adapter_config();
  config["r"] = 8;
  write_json(root, "adapter", "adapter_config.json", config);
  CHECK(refusal_at(root / "adapter").find("has rank 4, but adapter_config.json says r 8") !=
        std::string::npos);
  config["base_model_name_or_path"] = ".";
  write_json(root, "adapter", "adapter_config.json", config);
  CHECK(refusal_at(root / "adapter").find("another adapter as its base") != std::string::npos);
}

TEST_CASE("an adapter without its file has the weights of its rank and target modules") {
  // Published by PEFT's print_trainable_parameters() for Llama 2 7B.
  const TempFolder root;
  const auto adapter_of = [&](const json& changes) {
    json config = adapter_config();
    config["base_model_name_or_path"] = "llama-2-7b";
    config.merge_patch(changes);
    write_json(root, "adapter", "adapter_config.json", config);
    return parameters_at((root / "adapter").string()) - Integer{6738415616};
  };
  CHECK(adapter_of({{"r", 8}, {"target_modules", {"q_proj", "v_proj"}}}) == Integer{4194304});
  CHECK(adapter_of({{"r", 16}, {"target_modules", "all-linear"}}) == Integer{39976960});
  const Model model = load_model((root / "adapter").string());
  CHECK(stored_weights(model.spec, build_graph(model.spec, {})).bytes ==
        Integer{6738415616} * 2 + Integer{39976960} * 4);
}

TEST_CASE("all-linear leaves out a tied head, too, but no transform before one") {
  const TempFolder root;
  const auto adapter_of = [&](const char* base, int rank) {
    json config = adapter_config();
    config.merge_patch(
        {{"base_model_name_or_path", base}, {"r", rank}, {"target_modules", "all-linear"}});
    write_json(root, "adapter", "adapter_config.json", config);
    return parameters_at((root / "adapter").string()) - parameters_at(base);
  };
  // PEFT's print_trainable_parameters() for Llama 3.2 1B.
  CHECK(adapter_of("llama-3.2-1b", 16) == Integer{11272192});
  // Per layer four matrices 768 × 768, one to 3,072 and one back; the transform 768 × 768.
  const Integer layer = 4 * (768 + 768) + 2 * (768 + 3072);
  CHECK(adapter_of("bert-base-uncased-mlm", 4) == 4 * (12 * layer + 768 + 768));
}

TEST_CASE("settings of an adapter without its file that choose modules are named, of any type") {
  const TempFolder root;
  const auto refusal_with = [&](const json& changes) {
    json config = adapter_config();
    config["base_model_name_or_path"] = "llama-2-7b";
    config.merge_patch(changes);
    write_json(root, "adapter", "adapter_config.json", config);
    return refusal_of([&] { (void)load_model((root / "adapter").string()); });
  };
  CHECK(refusal_with({{"exclude_modules", "lm_head"}}).find("exclude_modules decides") !=
        std::string::npos);
  CHECK(refusal_with({{"layers_to_transform", 5}}).find("layers_to_transform decides") !=
        std::string::npos);
}

TEST_CASE("a module stored as one has one pair of adapter weights, each expert its own") {
  const TempFolder root;
  const auto adapter_of = [&](const char* base, const char* target) {
    json config = adapter_config();
    config["base_model_name_or_path"] = base;
    config["target_modules"] = {target};
    write_json(root, "adapter", "adapter_config.json", config);
    const Model model = load_model((root / "adapter").string());
    Graph graph;
    return count_of(model, graph).parts.adapter.evaluate(graph.sizes);
  };
  // Phi-3-mini: qkv_proj has 3 · 3072 rows of 3072.
  CHECK(adapter_of("phi-3-mini-4k", "qkv_proj") == Integer{32 * 4 * (3072 + 3 * 3072)});
  // Mixtral: eight experts per layer.
  CHECK(adapter_of("mixtral-8x7b", "w1") == Integer{32 * 8 * 4 * (4096 + 14336)});
}

TEST_CASE("an adapter without its file is refused where its config does not name the weights") {
  const TempFolder root;
  write_json(root, "base", "config.json", small_llama());
  const auto refusal_with = [&](const json& changes) {
    json config = adapter_config();
    config.merge_patch(changes);
    write_json(root, "adapter", "adapter_config.json", config);
    return refusal_at(root / "adapter");
  };
  CHECK(refusal_with({{"target_modules", ".*q_proj"}}).find("not a list of names") !=
        std::string::npos);
  CHECK(refusal_with({{"target_modules", {"c_attn"}}}).find("has no module c_attn") !=
        std::string::npos);
  for (const json& special :
       {json{{"rank_pattern", {{"q_proj", 8}}}}, json{{"modules_to_save", {"lm_head"}}},
        json{{"use_dora", true}}, json{{"bias", "all"}}}) {
    CHECK(refusal_with(special).find(special.items().begin().key() + " decides on them") !=
          std::string::npos);
  }
}

TEST_CASE("a sentence-transformers folder is its transformer and its dense layers") {
  const TempFolder root;
  const std::string package = "sentence_transformers.models.";
  const json modules = {{{"idx", 0}, {"path", "0_Transformer"}, {"type", package + "Transformer"}},
                        {{"idx", 1}, {"path", "1_Pooling"}, {"type", package + "Pooling"}},
                        {{"idx", 2}, {"path", "2_Dense"}, {"type", package + "Dense"}},
                        {{"idx", 3}, {"path", "3_Normalize"}, {"type", package + "Normalize"}}};
  write_json(root, "sbert", "modules.json", modules);
  write_json(root, "sbert/0_Transformer", "config.json",
             {{"model_type", "bert"},
              {"hidden_size", 64},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"intermediate_size", 96},
              {"vocab_size", 100},
              {"max_position_embeddings", 32},
              {"type_vocab_size", 2}});
  write_json(root, "sbert/2_Dense", "config.json",
             {{"in_features", 64},
              {"out_features", 32},
              {"bias", true},
              {"activation_function", "torch.nn.modules.activation.Tanh"}});
  const Model model = load_model((root / "sbert").string());
  CHECK(model.spec.name == "sbert");
  CHECK(model.spec.model_type == "bert");
  // Tables (100 + 32 + 2)·64 and a norm 2·64; per layer attention 4·(64² + 64), MLP 2·64·96 + 96 +
  // 64, norms 4·64; the pooler 64² + 64.
  const Integer bert = 134 * 64 + 128 + 2 * (4 * 4160 + 12288 + 160 + 256) + 4160;
  CHECK(parameters_at((root / "sbert").string()) == bert + Integer{64 * 32 + 32});
}

TEST_CASE("of a diffusers pipeline the transformer is read, and the other models are named") {
  const TempFolder root;
  write_json(root, "sigma", "model_index.json",
             {{"_class_name", "PixArtSigmaPipeline"},
              {"scheduler", {"diffusers", "DPMSolverMultistepScheduler"}},
              {"text_encoder", {"transformers", "T5EncoderModel"}},
              {"transformer", {"diffusers", "PixArtTransformer2DModel"}}});
  write_json(root, "sigma/text_encoder", "config.json", {{"model_type", "t5"}});
  const auto recorded = read_json(data_folder() / "diffusion/pixart_tiny.json");
  write_json(root, "sigma/transformer", "config.json", recorded.at("config"));
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, shape] : recorded.at("tensors").items()) {
    tensors.push_back(zeros(name, shape.get<std::vector<std::int64_t>>()));
  }
  checkpoint::write_safetensors(
      (root / "sigma/transformer") / "diffusion_pytorch_model.safetensors", tensors);
  const std::string pipeline = (root / "sigma").string();
  const Model model = load_model(pipeline);
  CHECK(model.spec.name == "sigma");
  CHECK(model.weight_files == pipeline + "/transformer");
  const auto& notes = model.spec.assumptions;
  CHECK(std::ranges::find(notes,
                          "of the pipeline, the transformer alone is counted: without "
                          "text_encoder (T5EncoderModel)") != notes.end());
  const Integer parameters{recorded.at("parameters").get<std::int64_t>()};
  CHECK(parameters_at(pipeline) == parameters);
  CHECK(parameters_at(pipeline + "/transformer") == parameters);
  CHECK(parameters_at(pipeline + "/transformer/config.json") == parameters);
}

TEST_CASE("a diffusers folder of other models is refused, and its components are named") {
  const TempFolder root;
  write_json(root, "flux", "model_index.json",
             {{"_class_name", "FluxPipeline"},
              {"_diffusers_version", "0.30.0"},
              {"scheduler", {"diffusers", "FlowMatchEulerDiscreteScheduler"}},
              {"safety_checker", {nullptr, nullptr}},
              {"text_encoder", {"transformers", "CLIPTextModel"}}});
  write_json(root, "flux/text_encoder", "config.json", {{"model_type", "clip_text_model"}});
  try {
    (void)load_model((root / "flux").string());
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.message() ==
          "is a diffusers pipeline (FluxPipeline) of several models: scheduler "
          "(FlowMatchEulerDiscreteScheduler), text_encoder (CLIPTextModel)");
    CHECK(error.hint().ends_with("text_encoder"));
  }
}

TEST_CASE("files beside a config are refused by what they describe") {
  const TempFolder root;
  write_file(root / "tokenizer.json", "{}");
  CHECK(refusal_at(root / "tokenizer.json").find("a tokenizer, not a model") != std::string::npos);
  write_file(root / "glm-5.hf_quant_config.json", R"({"producer": {"name": "modelopt"}})");
  CHECK(refusal_at(root / "glm-5.hf_quant_config.json").find("how the weights are quantised") !=
        std::string::npos);
  write_file(root / "retokenizer.json", "{}");
  CHECK(refusal_at(root / "retokenizer.json").find("model_type") != std::string::npos);
}

TEST_CASE("NeMo and Megatron checkpoints are refused by what they are") {
  const TempFolder root;
  fs::create_directories(root / "nemo");
  write_file((root / "nemo") / "model_config.yaml", "num_layers: 32\n");
  CHECK(refusal_at(root / "nemo").find("is a NeMo checkpoint") != std::string::npos);
  write_file(root / "gpt.yaml", "num_layers: 32\n");
  CHECK(refusal_at(root / "gpt.yaml").find("Megatron or NeMo") != std::string::npos);
  fs::create_directories(root / "nemo2/context");
  write_file((root / "nemo2/context") / "model.yaml", "_target_: LlamaModel\n");
  CHECK(refusal_at(root / "nemo2").find("is a NeMo checkpoint") != std::string::npos);
  fs::create_directories(root / "megatron");
  write_file((root / "megatron") / "latest_checkpointed_iteration.txt", "1000");
  CHECK(refusal_at(root / "megatron").find("Megatron or NeMo") != std::string::npos);
}
