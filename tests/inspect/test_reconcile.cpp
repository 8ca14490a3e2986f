// inspect finds an owner for every tensor and a tensor for every weight, and names the rest. The
// reference library wrote the reference checkpoints (tests/data/README.md); the tests introduce the
// errors in the others.
#include <doctest/doctest.h>

#include "inspect/model_folder.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;
using Lines = std::vector<std::string>;

namespace {

struct StoredHead {
  const char* model_class;
  nlohmann::json config;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors;
};

/// Small models of sound, with the shapes of their heads in transformers 5.24.
std::vector<StoredHead> heads_of_sound() {
  const nlohmann::json waveform{{"hidden_size", 32},
                                {"num_hidden_layers", 1},
                                {"num_attention_heads", 2},
                                {"intermediate_size", 48},
                                {"conv_dim", {16, 16}},
                                {"conv_kernel", {3, 3}},
                                {"conv_stride", {2, 2}},
                                {"num_feat_extract_layers", 2},
                                {"num_conv_pos_embeddings", 8},
                                {"num_conv_pos_embedding_groups", 2},
                                {"codevector_dim", 12},
                                {"proj_codevector_dim", 10},
                                {"num_codevectors_per_group", 6}};
  nlohmann::json wav2vec2 = waveform;
  wav2vec2["model_type"] = "wav2vec2";
  nlohmann::json unispeech = waveform;
  unispeech["model_type"] = "unispeech";
  nlohmann::json unispeech_sat = waveform;
  unispeech_sat["model_type"] = "unispeech-sat";
  const nlohmann::json whisper{{"model_type", "whisper"},    {"d_model", 32},
                               {"encoder_layers", 2},        {"encoder_attention_heads", 2},
                               {"encoder_ffn_dim", 48},      {"decoder_attention_heads", 2},
                               {"num_mel_bins", 8},          {"max_source_positions", 6},
                               {"classifier_proj_size", 10}, {"use_weighted_layer_sum", true}};
  return {{"Wav2Vec2ForPreTraining",
           wav2vec2,
           {{"quantizer.codevectors", {1, 12, 6}},
            {"quantizer.weight_proj.weight", {12, 16}},
            {"quantizer.weight_proj.bias", {12}},
            {"project_hid.weight", {10, 32}},
            {"project_hid.bias", {10}},
            {"project_q.weight", {10, 12}},
            {"project_q.bias", {10}}}},
          {"UniSpeechForPreTraining",
           unispeech,
           {{"quantizer.codevectors", {1, 12, 6}},
            {"project_q.weight", {10, 12}},
            {"project_hid.weight", {32, 10}},
            {"ctc_proj.weight", {80, 32}},
            {"ctc_proj.bias", {80}}}},
          {"UniSpeechSatForPreTraining",
           unispeech_sat,
           {{"quantizer.weight_proj.weight", {12, 32}},
            {"label_embeddings_concat", {504, 12}},
            {"speaker_proj.weight", {12, 32}},
            {"speaker_proj.bias", {12}},
            {"layer_norm_for_extract.weight", {32}},
            {"layer_norm_for_extract.bias", {32}}}},
          {"WhisperForAudioClassification",
           whisper,
           {{"layer_weights", {3}},
            {"encoder.conv1.weight", {32, 8, 3}},
            {"encoder.embed_positions.weight", {6, 32}},
            {"encoder.layers.1.fc1.weight", {48, 32}},
            {"encoder.layer_norm.weight", {32}},
            {"projector.weight", {10, 32}},
            {"projector.bias", {10}},
            {"classifier.weight", {2, 10}},
            {"classifier.bias", {2}}}}};
}

/// Values and bytes of all components together.
TensorTotals sum_of(const Inspection& inspection) {
  TensorTotals sum;
  for (const ComponentRow& row : inspection.components) sum += row.totals;
  return sum;
}

}  // namespace

TEST_CASE("the reference checkpoints are accounted for to the byte") {
  for (const auto& [name, parameters] :
       std::vector<std::pair<std::string, std::int64_t>>{{"gpt2", 60240}, {"t5", 119248}}) {
    const std::string model = name;  // doctest cannot capture a structured binding
    CAPTURE(model);
    const auto folder = data_folder() / "golden/models" / model;
    const Inspection inspection = inspect(folder.string());
    CHECK(problems_of(inspection).empty());
    CHECK(inspection.reconciliation->expected_parameters == Integer{parameters});
    CHECK(inspection.weights.values == Integer{parameters});
    CHECK(sum_of(inspection).bytes + Integer{0} == inspection.all.bytes);
    CHECK(inspection.all.bytes == Integer{4 * parameters});
    CHECK(inspection.weights.bits_per_value() == 32.0);
    CHECK(inspection.all.tensors ==
          static_cast<std::int64_t>(safetensors_shapes(folder / "model.safetensors").size()));
  }
}

TEST_CASE("every reference checkpoint of a known family reconciles") {
  for (const auto& model : golden_models()) {
    CAPTURE(model);
    const Inspection inspection = inspect(model.string());
    CHECK(inspection.all.tensors > 0);
    if (!inspection.reconciliation) continue;
    // The files of Gemma 3n leave out its MobileNet, of 294 million parameters.
    const std::string name = model.filename().string();
    const bool lacks_tower = name == "gemma3n_padded" || name == "gemma3n_whole";
    CHECK(problems_of(inspection).size() == (lacks_tower ? 1 : 0));
  }
  CHECK(golden_models().size() >= 3);
}

TEST_CASE("every tensor that a family's independent reference uses has an owner") {
  for (const auto& model : std::filesystem::directory_iterator(data_folder() / "families")) {
    CAPTURE(model.path());
    const Inspection inspection = inspect(model.path().string());
    REQUIRE(inspection.reconciliation.has_value());
    CHECK(problems_of(inspection).empty());
  }
}

TEST_CASE("every tensor that diffusers stores of a diffusion transformer has an owner") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "diffusion")) {
    CAPTURE(entry.path());
    const auto recorded = read_json(entry.path());
    if (!recorded.contains("tensors")) continue;
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, shape] : recorded.at("tensors").items()) {
      tensors.push_back(zeros(name, shape.get<std::vector<std::int64_t>>()));
    }
    const Inspection inspection = inspect_folder(recorded.at("config"), tensors);
    REQUIRE(inspection.reconciliation.has_value());
    CHECK(problems_of(inspection).empty());
    ++models;
  }
  CHECK(models == 10);
}

TEST_CASE("heads of models of sound have the names of their classes") {
  for (const StoredHead& head : heads_of_sound()) {
    CAPTURE(std::string(head.model_class));
    nlohmann::json config = head.config;
    config["architectures"] = {head.model_class};
    std::vector<TensorToWrite> tensors = tensors_of(config);
    // The table's preferred name is that of Whisper's decoder alone.
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name == "decoder.embed_positions.weight") {
        tensor.name = "encoder.embed_positions.weight";
      }
    }
    for (const auto& tensor : head.tensors) {
      CAPTURE(tensor.first);
      take(tensors, tensor.first);
      tensors.push_back(zeros(tensor.first, tensor.second));
    }
    const Inspection inspection = inspect_folder(config, tensors);
    REQUIRE(inspection.reconciliation.has_value());
    CHECK(problems_of(inspection).empty());
    CHECK(extras_of(inspection).empty());
  }
}

TEST_CASE("missing and surplus tensors and wrong shapes are named") {
  const nlohmann::json config = small_llama();
  auto tensors = tensors_of(config);
  CHECK(problems_of(inspect_folder(config, tensors)).empty());
  (void)take(tensors, "layers.1.mlp.up_proj.weight");
  tensors.push_back(zeros("layers.2.mlp.up_proj.weight", {96, 64}));
  (void)take(tensors, "layers.0.self_attn.k_proj.weight");
  tensors.push_back(zeros("layers.0.self_attn.k_proj.weight", {64, 32}));
  const Inspection inspection = inspect_folder(config, tensors);
  CHECK(problems_of(inspection) == Lines{"wrong shape: layers.0.self_attn.k_proj.weight",
                                         "missing tensor: layers.1.mlp.up_proj.weight",
                                         "unknown tensor: layers.2.mlp.up_proj.weight"});
  CHECK(inspection.reconciliation->expected_parameters -
            inspection.reconciliation->found_parameters ==
        Integer{96 * 64 + 32 * 64});
}

TEST_CASE("names may have the prefix of a class with a head or of a larger model") {
  const nlohmann::json config = small_llama();
  for (const std::string prefix : {"model.", "language_model.model.", "model.language_model."}) {
    CAPTURE(prefix);
    auto tensors = tensors_of(config);
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name != "lm_head.weight") tensor.name = prefix + tensor.name;
    }
    CHECK(problems_of(inspect_folder(config, tensors)).empty());
  }
}

TEST_CASE("a duplicate of a tied head differs from an untied head") {
  nlohmann::json config = small_llama();
  auto untied = tensors_of(config);
  config["tie_word_embeddings"] = true;
  const Inspection tied = inspect_folder(config, untied);
  CHECK(problems_of(tied).empty());
  CHECK(extras_of(tied) == Lines{"tied weight stored again: 1"});
  CHECK(tied.weights.values + Integer{128 * 64} == tied.all.values);
  TensorToWrite head = take(untied, "lm_head.weight");
  head.data[100] = std::byte{1};
  untied.push_back(head);
  CHECK(extras_of(inspect_folder(config, untied)) == Lines{"untied head: 1"});
}

TEST_CASE("a missing untied head is named, and its parameters are missing too") {
  const nlohmann::json config = small_llama();
  auto tensors = tensors_of(config);
  (void)take(tensors, "lm_head.weight");
  const Inspection inspection = inspect_folder(config, tensors);
  CHECK(problems_of(inspection).empty());
  CHECK(extras_of(inspection) == Lines{"missing untied head: 0"});
  CHECK(inspection.reconciliation->expected_parameters - inspection.weights.values ==
        Integer{128 * 64});
}

TEST_CASE("buffers, prediction layers and towers are named") {
  const nlohmann::json config = small_llama();
  auto tensors = tensors_of(config);
  tensors.push_back(zeros("model.layers.0.self_attn.rotary_emb.inv_freq", {8}));
  tensors.push_back(zeros("vision_tower.layers.0.mlp.weight", {3, 3}));
  tensors.push_back(zeros("multi_modal_projector.linear.weight", {3, 3}));
  tensors.push_back(zeros("layers.1.mlp.gate.e_score_correction_bias", {4}));
  tensors.push_back(zeros("layers.2.eh_proj.weight", {64, 128}));  // DeepSeek-V3's layer 61
  tensors.push_back(zeros("layers.2.mlp.down_proj.weight", {64, 96}));
  tensors.push_back(zeros("layers.1.self_attn.k_scale", {1}));
  const Inspection inspection = inspect_folder(config, tensors);
  CHECK(problems_of(inspection).empty());
  Lines extras = extras_of(inspection);
  std::ranges::sort(extras);
  CHECK(extras == Lines{"KV-cache scale: 1", "multi-token prediction layer: 2", "rotary buffer: 1",
                        "router bias buffer: 1", "vision or audio tower: 2"});
  const Integer parameters = inspection.reconciliation->expected_parameters;
  CHECK(inspection.weights.values == parameters);
  // The layer is no prediction layer without its input projection.
  (void)take(tensors, "layers.2.eh_proj.weight");
  CHECK(problems_of(inspect_folder(config, tensors)) ==
        Lines{"unknown tensor: layers.2.mlp.down_proj.weight"});
}

TEST_CASE("talker and vocoder of a whole Omni model are named beside its thinker") {
  for (const char* const model : {"qwen2_5_omni", "qwen3_omni_moe"}) {
    const nlohmann::json config =
        read_json(data_folder() / "towers/tiny" / (std::string(model) + ".config.json"));
    auto tensors = tensors_of(config);
    for (TensorToWrite& tensor : tensors) tensor.name.insert(0, "thinker.");
    tensors.push_back(zeros("talker.model.norm.weight", {8}));
    tensors.push_back(zeros("token2wav.dit.norm.weight", {8}));
    tensors.push_back(zeros("code2wav.norm.weight", {8}));
    const Inspection inspection = inspect_folder(config, tensors);
    CHECK(extras_of(inspection) == Lines{"talker or vocoder: 3"});
  }
}

TEST_CASE("TensorFlow's norm names and pretraining heads are recognised") {
  nlohmann::json config = read_json(data_folder() / "golden/models/bert_model/config.json");
  config["architectures"] = {"BertForMaskedLM"};
  auto tensors = tensors_of(config);
  for (TensorToWrite& tensor : tensors) {
    for (const auto& [torch, tensorflow] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
      const auto at = tensor.name.find(torch);
      if (at != std::string::npos) tensor.name.replace(at, std::string::npos, tensorflow);
    }
  }
  tensors.push_back(zeros("cls.seq_relationship.weight", {2, 4}));
  tensors.push_back(zeros("bert.pooler.dense.weight", {4, 4}));
  const Inspection inspection = inspect_folder(config, tensors);
  CHECK(problems_of(inspection).empty());
  CHECK(extras_of(inspection) == Lines{"head that the model does not use: 2"});
}

TEST_CASE(
    "an unsupported config is a separate error; without a config, tensors are summed by name") {
  const std::vector<TensorToWrite> tensors = {
      zeros("model.layers.0.w1.weight", {2, 3}), zeros("model.layers.11.w1.weight", {2, 3}),
      zeros("model.layers.0.w2.weight", {2, 3}, StoredType::bfloat16),
      zeros("model.rotary_emb.inv_freq", {4})};
  const Inspection unknown = inspect_folder({{"model_type", "unheard-of"}}, tensors);
  CHECK_FALSE(unknown.is_explained());
  CHECK(unknown.config_error.find("unheard-of") != std::string::npos);
  const Inspection alone = inspect_folder(tensors);
  CHECK(alone.is_explained());
  CHECK_FALSE(alone.reconciliation.has_value());
  REQUIRE(alone.components.size() == 2);
  CHECK(alone.components[0].component == "model.layers.{}.w1.weight");
  CHECK(alone.components[0].totals.tensors == 2);
  CHECK(alone.weights.values == Integer{18});
  REQUIRE(alone.types.size() == 2);
  CHECK(alone.types[0].type == "F32");
  CHECK(alone.types[0].totals.bytes == Integer{4 * 16});
  CHECK(alone.types[1].totals.bits_per_value() == 16.0);
}

TEST_CASE("inspecting one shard does not miss the other shards' tensors") {
  const nlohmann::json config = small_llama();
  auto tensors = tensors_of(config);
  const std::vector<TensorToWrite> first(tensors.begin(), tensors.begin() + 5);
  const std::vector<TensorToWrite> second(tensors.begin() + 5, tensors.end());
  const TempFolder folder;
  write_file(folder / "config.json", config.dump());
  checkpoint::write_safetensors(folder / "model-00001-of-00002.safetensors", first);
  checkpoint::write_safetensors(folder / "model-00002-of-00002.safetensors", second);
  nlohmann::json map;
  for (const auto& tensor : first) map[tensor.name] = "model-00001-of-00002.safetensors";
  for (const auto& tensor : second) map[tensor.name] = "model-00002-of-00002.safetensors";
  write_file(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  const Inspection whole = inspect(folder.path().string());
  CHECK(whole.files == 2);
  CHECK(problems_of(whole).empty());
  CHECK(whole.weights.values == whole.reconciliation->expected_parameters);
  const Inspection part = inspect((folder / "model-00001-of-00002.safetensors").string());
  CHECK(problems_of(part).empty());
  CHECK(part.all.tensors == 5);
  CHECK(part.notes.size() == 1);
}

TEST_CASE("the error for a folder without supported weights has a hint") {
  const TempFolder folder;
  write_file(folder / "pytorch_model.bin", "x");
  const Error error = input_error_of([&] { (void)inspect(folder.path().string()); });
  CHECK(error.hint().find("safetensors") != std::string::npos);
}

TEST_CASE("a config with far more layers than the files is answered at once") {
  nlohmann::json config = small_llama();
  const auto tensors = tensors_of(config);
  config["num_hidden_layers"] = 100'000;
  const Inspection inspection = inspect_folder(config, tensors);
  CHECK_FALSE(inspection.is_explained());
  CHECK(inspection.reconciliation->problem_count > 800'000);
}

TEST_CASE("a vision tower in the config reconciles with its tensors") {
  nlohmann::json text = small_llama();
  text.erase("architectures");
  text["model_type"] = "gemma3_text";
  text["head_dim"] = 16;
  text["query_pre_attn_scalar"] = 16;
  text["sliding_window"] = 8;
  text["tie_word_embeddings"] = true;
  const nlohmann::json config{{"model_type", "gemma3"},
                              {"architectures", {"Gemma3ForConditionalGeneration"}},
                              {"text_config", text},
                              {"mm_tokens_per_image", 4},
                              {"vision_config",
                               {{"hidden_size", 24},
                                {"intermediate_size", 40},
                                {"num_hidden_layers", 2},
                                {"num_attention_heads", 4},
                                {"image_size", 16},
                                {"patch_size", 4},
                                {"vision_use_head", false}}}};
  auto tensors = tensors_of(config);
  // Convolutions store channels and kernel sides as separate dimensions: SigLIP's patch_embedding.
  const std::string patches = "embeddings.patch_embedding.weight";
  const auto stored = std::ranges::find_if(
      tensors, [&](const auto& tensor) { return tensor.name.ends_with(patches); });
  REQUIRE(stored != tensors.end());
  const std::string tower = stored->name.substr(0, stored->name.size() - patches.size());
  tensors.erase(stored);
  tensors.push_back(zeros(tower + "embeddings.patch_embedding.weight", {24, 3, 4, 4}));
  const Inspection inspection = inspect_folder(config, tensors);
  CHECK(problems_of(inspection).empty());
  CHECK(extras_of(inspection).empty());
  // 2 layers of 4·(24² + 24) + 2·24·40 + 40 + 24 + 4·24; patches, positions, norm, projector.
  const Integer vision =
      2 * (4 * (576 + 24) + 2 * 960 + 64 + 96) + 24 * 48 + 24 + 16 * 24 + 48 + 24 + 24 * 64;
  const auto row =
      std::ranges::find(inspection.components, "vision_tower", &ComponentRow::component);
  REQUIRE(row != inspection.components.end());
  Integer found = 0;
  for (const ComponentRow& own : inspection.components) {
    const bool own_part = own.component == "vision_tower" || own.component == "projector";
    if (own_part) found += own.totals.values;
  }
  CHECK(found == vision);
  CHECK(inspection.weights.values == inspection.reconciliation->expected_parameters);
  (void)take(tensors, tower + "encoder.layers.1.self_attn.out_proj.bias");
  CHECK(problems_of(inspect_folder(config, tensors)) ==
        Lines{"missing tensor: " + tower + "encoder.layers.1.self_attn.out_proj.bias"});
}

TEST_CASE("GLM-4.5's experts and GLM-5's indexer reconcile") {
  nlohmann::json config = small_llama();
  config["architectures"] = {"Glm4MoeForCausalLM"};
  config["model_type"] = "glm4_moe";
  config["head_dim"] = 16;
  config["use_qk_norm"] = true;
  config["attention_bias"] = true;
  config["n_routed_experts"] = 4;
  config["num_experts_per_tok"] = 2;
  config["moe_intermediate_size"] = 24;
  config["first_k_dense_replace"] = 0;
  CHECK(problems_of(inspect_folder(config, tensors_of(config))).empty());
  auto tensors = tensors_of(config);
  (void)take(tensors, "layers.1.mlp.shared_experts.down_proj.weight");
  (void)take(tensors, "layers.1.mlp.experts.3.gate_proj.weight");
  (void)take(tensors, "layers.0.self_attn.q_norm.weight");
  CHECK(problems_of(inspect_folder(config, tensors)).size() == 3);

  nlohmann::json sparse = small_llama();
  sparse["architectures"] = {"GlmMoeDsaForCausalLM"};
  sparse["model_type"] = "glm_moe_dsa";
  sparse["num_key_value_heads"] = 4;
  sparse["q_lora_rank"] = 24;
  sparse["kv_lora_rank"] = 16;
  sparse["qk_nope_head_dim"] = 8;
  sparse["qk_rope_head_dim"] = 4;
  sparse["v_head_dim"] = 8;
  sparse["index_n_heads"] = 2;
  sparse["index_head_dim"] = 8;
  sparse["n_routed_experts"] = 4;
  sparse["num_experts_per_tok"] = 2;
  sparse["moe_intermediate_size"] = 24;
  sparse["first_k_dense_replace"] = 0;
  auto all = tensors_of(sparse);
  CHECK(problems_of(inspect_folder(sparse, all)).empty());
  (void)take(all, "layers.1.self_attn.indexer.wq_b.weight");
  CHECK(problems_of(inspect_folder(sparse, all)).size() == 1);
}
