// Encoders, drafts, towers and heads with keys that few published files have: the parameters that
// the change adds or removes, counted by hand from the tensors of the class.
#include <doctest/doctest.h>

#include "headroom/tiled_tower.h"
#include "reference/config_with_keys.h"
#include "support/data.h"
#include "support/python_json.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

std::int64_t parameters_of_config(const json& config) {
  return static_cast<std::int64_t>(parameters_on(build_graph(spec_of(config), {})));
}

std::int64_t parameters_of_part(const char* file, const char* with) {
  return parameters_of_config(config_with_keys(file, with));
}

/// Parameters that the changes add to those of the config.
std::int64_t added_by(const char* file, const char* with) {
  return parameters_of_part(file, with) - parameters_of_part(file, "{}");
}

}  // namespace

TEST_CASE("a flag that turns off the bias of a head that a class lacks changes nothing") {
  constexpr const char* kFile = "golden/tiny/llama.json";
  CHECK(added_by(kFile, R"({"architectures": ["LlamaModel"], "lm_head_bias": false})") ==
        -101 * 48);
}

TEST_CASE("a word under a name that others give to a part changes nothing, and is noted") {
  const ModelSpec spec = spec_of(config_with_keys("golden/tiny/gpt2.json", R"({"part": {"attention":
      "flash"}})"));
  CHECK(spec.unread_keys == std::vector<std::string>{"part"});
  CHECK(added_by("golden/tiny/gpt2.json", R"({"part": {"attention": "flash"}})") == 0);
}

TEST_CASE("Llama 4's temperature tuning may be a number, of which 0 turns it off") {
  const auto tuned = [](const char* with) {
    const StackSpec stack =
        *spec_of(config_with_keys("golden/tiny/llama4_text.json", with)).decoder;
    std::vector<bool> layers;
    for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
      layers.push_back(stack.attention_of(stack.variant(layer)).temperature.has_value());
    }
    return layers;
  };
  const std::vector<bool> without_rope{false, false, false, true};
  CHECK(tuned(R"({"attn_temperature_tuning": true})") == without_rope);
  CHECK(tuned(R"({"attn_temperature_tuning": 4})") == without_rope);
  CHECK(tuned(R"({"attn_temperature_tuning": 0})") == std::vector<bool>(4, false));
}

TEST_CASE("RemBERT's causal and masked models have the same head, of its own width") {
  constexpr const char* kFile = "towers/tiny/rembert.config.json";
  constexpr std::int64_t kHead = 48 * 60 + 60 + 2 * 60 + 60 * 101 + 101;
  constexpr std::int64_t kPooler = 48 * 48 + 48;
  const std::int64_t bare = parameters_of_part(kFile, R"({"architectures": ["RemBertModel"]})");
  for (const char* const with : {R"({"architectures": ["RemBertForMaskedLM"]})",
                                 R"({"architectures": ["RemBertForCausalLM"]})"}) {
    CHECK(parameters_of_part(kFile, with) == bare - kPooler + kHead);
  }
}

TEST_CASE("Ling 2.5's rotary key is as wide as RoPE turns, all of a head if it turns all") {
  // 6 heads of queries of rank 20 and one key, 4 columns wider in 2 layers of latent attention.
  CHECK(added_by("families/bailing_v2_5/config.json",
                 R"({"partial_rotary_factor": 1, "qk_rope_head_dim": 8, "qk_head_dim": 18})") ==
        2 * 4 * (6 * 20 + 32));
}

TEST_CASE("DINOv3's base of RoPE may stand in rope_parameters") {
  constexpr const char* kFile = "encoders/tiny/dinov3_vit.json";
  constexpr const char* kWith = R"({"rope_parameters": {"rope_theta": 50}})";
  CHECK(spec_of(config_with_keys(kFile, kWith)).position.rope.theta == 50);
  CHECK(spec_of(config_with_keys(kFile, R"({"rope_parameters": {"rope_type": "default"}})"))
            .position.rope.theta == 100);
  CHECK(added_by(kFile, kWith) == 0);
}

TEST_CASE("a DSpark draft corrects its logits by gates or by a recurrent cell, too") {
  constexpr const char* kFile = "drafts/qwen3-4b-dspark.config.json";
  CHECK(added_by(kFile, R"({"dflash_config": {"markov_head_type": "gated"}})") ==
        (2560 + 256) * 256 + 256);
  CHECK(added_by(kFile, R"({"dflash_config": {"markov_head_type": "rnn"}})") ==
        (2560 + 2 * 256) * 3 * 256 + 3 * 256);
  CHECK(added_by(kFile, R"({"dflash_config": {"attention_mode": "mha"},
                            "num_key_value_heads": 32})") == 5 * 2 * 2560 * (32 - 8) * 128);
}

TEST_CASE("Florence-2's published files have their table of positions in an object") {
  constexpr const char* kFile = "towers/tiny/florence2.config.json";
  CHECK(added_by(kFile, R"({"vision_config": {"max_position_embeddings": null, "image_pos_embed":
      {"type": "learned_abs_2d", "max_pos_embeddings": 12}}})") == 2 * (12 - 10) * 32 / 2);
  CHECK(added_by(kFile, R"({"vision_config": {"max_position_embeddings": null,
      "image_pos_embed": {"type": "learned_abs_2d"}}})") == 2 * (50 - 10) * 32 / 2);
}

TEST_CASE("Gemma 3 of transformers 4 has a head of its own if both configs untie it") {
  CHECK(added_by("towers/tiny/gemma3.config.json",
                 R"({"transformers_version": "4.50.0", "tie_word_embeddings": false,
                     "text_config": {"tie_word_embeddings": false}})") == 101 * 48);
}

TEST_CASE("MiniCPM-V's text model is Qwen2, Llama or Qwen3 by its version") {
  constexpr const char* kFile = "towers/tiny/minicpmv.config.json";
  // Qwen2 has biases of 48 queries and 2 · 24 keys and values in 2 layers; Qwen3 none, but heads of
  // 128 where the config has no head_dim, with norms.
  constexpr std::int64_t kBiases = 48 + 2 * 24;
  constexpr std::int64_t kWider = 2 * 48 * (4 * 128 - 48) + 2 * 48 * (2 * 128 - 24) + 2 * 128;
  CHECK(added_by(kFile, R"({"version": 4.0})") == -2 * kBiases);
  CHECK(added_by(kFile, R"({"version": 4.5})") == 2 * (kWider - kBiases));
}

TEST_CASE("Nemotron Omni's text model may stand in llm_config") {
  json config = config_with_keys("towers/tiny/nemotron_h_omni.config.json", "{}");
  const std::int64_t parameters = parameters_of_config(config);
  config["llm_config"] = config["text_config"];
  config.erase("text_config");
  CHECK(parameters_of_config(config) == parameters);
}

TEST_CASE("Phi's first format has no bias of a head without a head") {
  const auto parameters = [](const char* name) {
    return parameters_of_config({{"model_type", "phi-msft"},
                                 {"architectures", {name}},
                                 {"n_embd", 64},
                                 {"n_layer", 2},
                                 {"n_head", 4},
                                 {"vocab_size", 96},
                                 {"n_positions", 64},
                                 {"rotary_dim", 8}});
  };
  // Attention and a network of 4 · 64, each with biases, behind one norm.
  constexpr std::int64_t kLayer = 4 * (64 * 64 + 64) + 2 * 64 * 256 + 256 + 64 + 2 * 64;
  CHECK(parameters("PhiModel") == 96 * 64 + 2 * kLayer + 2 * 64);
  CHECK(parameters("PhiForCausalLM") == 96 * 64 + 2 * kLayer + 2 * 64 + 64 * 96 + 96);
}

TEST_CASE("mT5's width under its common name leaves its head untied") {
  CHECK(added_by("golden/tiny/mt5.json", R"({"d_model": null, "hidden_size": 48,
                                             "tie_word_embeddings": null})") == 0);
}

TEST_CASE("the encoders of Switch Transformers and T5Gemma are models, too") {
  // 3 heads of 8 in 3 layers, of which one has a router and 4 experts of 40.
  constexpr std::int64_t kSwitch = 59 * 24 + 3 * (4 * 24 * 24 + 2 * 24) + 2 * (2 * 24 * 40) +
                                   4 * (2 * 24 * 40) + 4 * 24 + 3 * 8 + 24;
  CHECK(parameters_of_part("families/switch_transformers/config.json",
                           R"({"architectures": ["SwitchTransformersEncoderModel"]})") == kSwitch);
  // 4 and 2 heads of 14 in 3 layers with a gated network of 80 and 4 norms.
  constexpr std::int64_t kLayer = 2 * 48 * 56 + 2 * 48 * 28 + 3 * 48 * 80 + 4 * 48;
  CHECK(parameters_of_part("golden/models/t5gemma/config.json",
                           R"({"architectures": ["T5GemmaEncoderModel"]})") ==
        101 * 48 + 3 * kLayer + 48);
}

TEST_CASE("the first Transformer's heads may have any width, and its positions may be learned") {
  constexpr const char* kFile = "golden/tiny/transformer_vanilla.json";
  // 4 heads, of 12 columns by default, in 3 + 2 + 2 attentions with biases.
  constexpr std::int64_t kKeys = 2 * (48 + 1) * (24 - 48);
  constexpr std::int64_t kValues = (48 + 1) * (40 - 48) + 48 * (40 - 48);
  CHECK(added_by(kFile, R"({"d_k": 6, "d_v": 10})") == 7 * (kKeys + kValues));
  CHECK(added_by(kFile, R"({"d_k": 6})") == 7 * kKeys);
  CHECK(added_by(kFile, R"({"positional_encoding": "learned", "max_position_embeddings": 40})") ==
        2 * 40 * 48);
}

TEST_CASE("a speaker model without sizes of its frame layers has those of the class") {
  constexpr const char* kFile = "saved/wav2vec2_speakers.json";
  constexpr std::int64_t kOwn =
      48 * 24 + 24 + 24 * 5 * 24 + 24 + 24 * 3 * 24 + 24 + 24 * 40 + 40 + 2 * 40 * 20 + 20;
  constexpr std::int64_t kOfClass = 48 * 512 + 512 + 512 * 5 * 512 + 512 +
                                    2 * (512 * 3 * 512 + 512) + 512 * 512 + 512 + 512 * 1500 +
                                    1500 + 2 * 1500 * 20 + 20;
  CHECK(added_by(kFile, R"({"tdnn_dim": null, "tdnn_kernel": null})") == kOfClass - kOwn);
}

TEST_CASE("XLNet's classifier may have no dense layer before its scores") {
  CHECK(added_by("saved/xlnet_sequence_classifier.json", R"({"summary_use_proj": false})") ==
        -(48 * 48 + 48));
}

TEST_CASE("Llama 3.2 Vision with single tiles has tables of one tile, and does not run") {
  constexpr const char* kFile = "golden/models/mllama_images/config.json";
  constexpr const char* kWith =
      R"({"vision_config": {"supported_aspect_ratios": [[1, 1]], "max_num_tiles": 1}})";
  // Tables by canvas and tile, of 8 canvases and none: positions of 10 rows, and two of tiles.
  CHECK(added_by(kFile, kWith) == (2 * 1 - 9 * 4) * (10 + 2) * 20);
  CHECK(spec_of(config_with_keys(kFile, kWith)).not_run == "its images are single tiles");
}

TEST_CASE("an image fills the canvas that enlarges it least, wherever the list has it") {
  constexpr const char* kWith =
      R"({"vision_config": {"supported_aspect_ratios": [[2, 2], [1, 2], [1, 1]]}})";
  const TowerSpec tower =
      *spec_of(config_with_keys("golden/models/mllama_images/config.json", kWith)).tower;
  const ImageTiling square = canvas_of_image(tower, {10, 10});
  CHECK(square.tile_rows == 1);
  CHECK(square.tile_columns == 1);
  CHECK(number_of_canvas(tower, square) == 3);
  CHECK(number_of_canvas(tower, canvas_of_image(tower, {10, 20})) == 2);
  ImageTiling absent;
  absent.tile_rows = 3;
  absent.tile_columns = 2;
  CHECK(refusal_of([&] {
          (void)number_of_canvas(tower, absent);
        }).find("supported_aspect_ratios lack 3 × 2 tiles") != std::string::npos);
}

TEST_CASE("LLaVA's tower may be Pixtral's, which reads an image in its own size") {
  constexpr const char* kFile = "towers/tiny/llava.config.json";
  constexpr const char* kWith = R"({"vision_config": {"model_type": "pixtral"}})";
  constexpr std::int64_t kPatches = 40 * 3 * 6 * 6;
  constexpr std::int64_t kClip = kPatches + 40 + (16 + 1) * 40 + 2 * 2 * 40 +
                                 3 * (4 * (40 * 40 + 40) + 2 * 40 * 56 + 56 + 40 + 2 * 2 * 40);
  constexpr std::int64_t kPixtral = kPatches + 40 + 3 * (4 * 40 * 40 + 3 * 40 * 56 + 2 * 40);
  CHECK(added_by(kFile, kWith) == kPixtral - kClip);
  CHECK(spec_of(config_with_keys(kFile, kWith)).tower->rule == ImageRule::native);
}

TEST_CASE("InternVL's first pixel shuffle has the same weights, and does not run") {
  constexpr const char* kFile = "towers/tiny/internvl_chat.config.json";
  CHECK(added_by(kFile, R"({"ps_version": "v1"})") == 0);
  CHECK(spec_of(config_with_keys(kFile, "{}")).not_run.empty());
  for (const char* const with : {R"({"ps_version": "v1"})", R"({"ps_version": null})"}) {
    CHECK(spec_of(config_with_keys(kFile, with)).not_run.find("ps_version v1") !=
          std::string::npos);
  }
}

TEST_CASE("GLM-OCR's class has sections of RoPE for 64 columns of a head") {
  constexpr const char* kFile = "towers/tiny/glm_ocr.config.json";
  const auto note = [](const char* with) { return spec_of(config_with_keys(kFile, with)).not_run; };
  CHECK(note(R"({"text_config": {"head_dim": 128, "rope_parameters": {"partial_rotary_factor": 0.5,
                 "mrope_section": null}}})")
            .empty());
  CHECK(note(R"({"text_config": {"head_dim": 64, "rope_parameters": {"partial_rotary_factor": 0.5,
                 "mrope_section": null}}})")
            .find("add mrope_section") != std::string::npos);
}

TEST_CASE("MiMo-V2.5's words of codes are one number, or one for each code; sinks may be off") {
  constexpr const char* kFile = "wild/mimo-v2.5.config.json";
  CHECK(added_by(kFile, R"({"audio_config": {"speech_vocab_size": 1280}})") == 0);
  CHECK(added_by(kFile, R"({"audio_config": {"speech_vocab_size": null}})") == 0);
  CHECK(added_by(kFile, R"({"audio_config": {"audio_channels": 3,
      "speech_vocab_size": "1280-640-1"}})") == 1024 * (1280 + 640 + 1 - 20 * 1280));
  CHECK(added_by(kFile, R"({"vision_config": {"use_sink": false}})") == -(28 - 4) * 32);
}

TEST_CASE(
    "Phi-4 multimodal names a layer of its image tower, and may leave out how sound is read") {
  constexpr const char* kFile = "published/phi-4-multimodal.config.json";
  const auto layer = [](const char* with) {
    return spec_of(config_with_keys(kFile, with)).tower->projector.feature_layers;
  };
  CHECK(layer(R"({"img_processor": {"layer_idx": -2, "type_feature": "patch"}})") == layer("{}"));
  CHECK(layer(R"({"img_processor": {"layer_idx": -1}})") !=
        layer(R"({"img_processor": {"layer_idx": -2}})"));
  CHECK(added_by(kFile, R"({"img_processor": {"layer_idx": -2, "name": "clip_vision_model"}})") ==
        0);
  CHECK(added_by(kFile, R"({"embd_layer": {"audio_embd_layer": null}})") == 0);
}

TEST_CASE("RWKV-7's heads may be counted instead of their width, at most one for each column") {
  json config = config_with_keys("families/rwkv7/config.json", R"({"num_heads": 4})");
  const std::int64_t parameters = parameters_of_config(config);
  config["head_dim"] = nullptr;
  CHECK(parameters_of_config(config) == parameters);
  config["num_heads"] = 33;
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("#/num_heads: exceeds hidden_size") !=
        std::string::npos);
}

TEST_CASE("keys of RoPE count for their own kinds of scaling alone") {
  const auto rope = [](const char* scaling) {
    json config = config_with_keys("families/llama_linear/config.json", "{}");
    config["rope_scaling"] = json::parse(scaling);
    return spec_of(config).position.rope;
  };
  const std::string factors = R"("short_factor": [1, 1, 1], "long_factor": [1, 1, 1],)";
  const RopeSpec longrope =
      rope((R"({"rope_type": "longrope", "factor": 4, "attention_factor": 1.5,)" + factors +
            R"("original_max_position_embeddings": 1})")
               .c_str());
  CHECK(longrope.attention_factor == 1.5);
  const RopeSpec linear = rope(R"({"rope_type": "linear", "factor": 2, "alpha": 1000})");
  CHECK(linear.scaling == RopeScalingKind::linear);
  CHECK(linear.theta == rope(R"({"rope_type": "linear", "factor": 2})").theta);
}

TEST_CASE("a preprocessor's limits of pixels bind the towers that round as Qwen's does") {
  const auto tokens = [](const char* file, const char* limits) {
    const ScratchFolder folder;
    const json config = config_with_keys(file, "{}");
    folder.write("config.json", config.dump());
    folder.write("preprocessor_config.json", limits);
    WorkloadRequest request;
    request.images = 1;
    request.image_size = {160, 160};
    const Model model = load_model(folder.path().string());
    return resolve(request, model.spec).images.totals.tokens;
  };
  constexpr const char* kLimits = R"({"size": {"shortest_edge": 64, "longest_edge": 6400}})";
  CHECK(tokens("towers/tiny/qwen2_vl.config.json", "{}") == 400);
  CHECK(tokens("towers/tiny/qwen2_vl.config.json", R"({"max_pixels": 6400})") == 100);
  CHECK(tokens("towers/tiny/qwen2_vl.config.json", R"({"min_pixels": 102400})") == 1600);
  for (const char* const file :
       {"towers/tiny/glm4v.config.json", "towers/tiny/gemma4.config.json"}) {
    CAPTURE(file);
    CHECK(tokens(file, kLimits) == tokens(file, "{}"));
  }
}
