// Heads of classes beside the language model: the config that states their settings, their rows and
// weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "headroom/analysis.h"
#include "headroom/workload.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

json of_class(const char* type, const char* name) {
  return {{"model_type", type}, {"architectures", {name}}};
}

Integer parameters_of(const json& config) {
  const Graph graph = build_graph(spec_of(config), {});
  return count_parameters(graph).total.evaluate(graph.sizes);
}

/// The rows of the weights whose paths have `part`.
std::set<std::string> rows_of(const json& config, std::string_view part) {
  std::set<std::string> rows;
  const Graph graph = build_graph(spec_of(config), {});
  for (const Weight& weight : graph.weights) {
    const bool named = weight.path.find(part) != std::string::npos;
    if (named) rows.insert(name_of(weight.component));
  }
  return rows;
}

bool has_note(const json& config, std::string_view part) {
  return std::ranges::any_of(notes_on_config(spec_of(config)), [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

}  // namespace

// GenericForSequenceClassification, transformers, modeling_layers.py: get_text_config().
TEST_CASE("a multimodal model's classifier finds padding by its text model's pad_token_id") {
  json gemma = read_json(data_folder() / "towers/tiny/gemma3.config.json");
  gemma["architectures"] = {"Gemma3ForSequenceClassification"};
  json qwen = of_class("qwen3_5", "Qwen3_5ForSequenceClassification");
  for (json config : {gemma, qwen}) {
    CAPTURE(config["model_type"].get<std::string>());
    config["pad_token_id"] = 3;
    config["text_config"]["pad_token_id"] = 5;
    CHECK(spec_of(config).head.classifier->token_id == 5);
    config["text_config"]["pad_token_id"] = nullptr;
    CHECK_FALSE(spec_of(config).head.classifier->token_id.has_value());
  }
}

// WhisperForAudioClassification of transformers 5.24 with WhisperConfig's defaults: 8,307,458
// parameters, and 5 more with a weight for each of 4 layers and their input.
TEST_CASE("Whisper's classifier has a weight for each layer that it sums") {
  json config = of_class("whisper", "WhisperForAudioClassification");
  CHECK(parameters_of(config) == 8'307'458);
  config["use_weighted_layer_sum"] = true;
  CHECK(parameters_of(config) == 8'307'463);
  CHECK(rows_of(config, "layer_weights") == std::set<std::string>{"head"});
  config["architectures"] = {"WhisperForConditionalGeneration"};
  CHECK(parameters_of(config) == 37'760'640);  // tests/data/defaults/types.csv
}

// The projection of CLIPTextModelWithProjection and CLIPVisionModelWithProjection gives their first
// output (transformers, models/clip).
TEST_CASE("an encoder of CLIP with a projection is counted, and not run") {
  for (const auto& names : {std::pair{"clip_text_model", "CLIPTextModel"},
                            std::pair{"clip_vision_model", "CLIPVisionModel"}}) {
    const std::string name = names.second;
    CAPTURE(name);
    CHECK(spec_of(of_class(names.first, name.c_str())).not_run.empty());
    const json config = of_class(names.first, (name + "WithProjection").c_str());
    CHECK(spec_of(config).not_run.find("projection") != std::string::npos);
    CHECK(rows_of(config, "_projection") == std::set<std::string>{"head"});
    CHECK(has_note(config, "the head of " + name + "WithProjection counts as parameters"));
  }
}

// GPT2DoubleHeadsModel and OpenAIGPTDoubleHeadsModel select a token, and project it to one score.
TEST_CASE("a model with double heads scores a choice by one token beside the language model") {
  for (const auto& names : {std::pair{"gpt2", "GPT2"}, std::pair{"openai-gpt", "OpenAIGPT"}}) {
    const std::string prefix = names.second;
    CAPTURE(prefix);
    json alone = of_class(names.first, (prefix + "LMHeadModel").c_str());
    json both = of_class(names.first, (prefix + "DoubleHeadsModel").c_str());
    constexpr std::int64_t kWidth = 768;
    CHECK(parameters_of(both) - parameters_of(alone) == kWidth + 1);
    Workload workload;
    workload.batch_size = 3;
    workload.seq_len = 7;
    const auto flops = [&](const json& config) {
      return count(spec_of(config), workload).figures.forward.matrix_flops;
    };
    CHECK(flops(both) - flops(alone) == 3 * 2 * kWidth);
    CHECK(spec_of(both).not_run.empty());
    alone["summary_type"] = "first";
    both["summary_type"] = "first";
    CHECK(spec_of(alone).not_run.empty());
    CHECK_THROWS_AS((void)spec_of(both), Error);
  }
}

TEST_CASE("reward models of Qwen2.5-Math have Qwen2.5's layers and two of their own") {
  json config = json::parse(find_preset("qwen2.5-7b").value().json).at("config");
  constexpr std::int64_t kWidth = 3584;
  const Integer without_head = parameters_of(config) - Integer{152064 * kWidth};
  for (const auto& scores :
       {std::pair{"Qwen2ForRewardModel", 1}, std::pair{"Qwen2ForProcessRewardModel", 2}}) {
    config["architectures"] = {scores.first};
    CHECK(parameters_of(config) ==
          without_head + Integer{kWidth * kWidth + kWidth + scores.second * (kWidth + 1)});
  }
}

TEST_CASE("weights of an image encoder's pooled output belong to the head") {
  CHECK(rows_of(of_class("siglip_vision_model", "SiglipVisionModel"), "head.") ==
        std::set<std::string>{"head"});
  CHECK(rows_of(of_class("siglip_text_model", "SiglipTextModel"), "head.") ==
        std::set<std::string>{"head"});
  CHECK(rows_of(of_class("siglip", "SiglipForImageClassification"), "head.cross_attention") ==
        std::set<std::string>{"head"});
}

TEST_CASE("the head of pretraining sound belongs to the head, and a note names it") {
  for (const auto& names : {std::pair{"wav2vec2", "Wav2Vec2ForPreTraining"},
                            std::pair{"unispeech", "UniSpeechForPreTraining"},
                            std::pair{"unispeech-sat", "UniSpeechSatForPreTraining"}}) {
    const std::string name = names.second;
    CAPTURE(name);
    const json config = of_class(names.first, names.second);
    CHECK(rows_of(config, "head.") == std::set<std::string>{"head"});
    CHECK(has_note(config, "the head of " + name + " counts as parameters"));
    CHECK_FALSE(has_note(config, "outside the text model"));
    CHECK(spec_of(config).not_run.find("pretraining") != std::string::npos);
  }
}

TEST_CASE("a codebook that its groups do not divide is refused with both numbers") {
  json config = of_class("wav2vec2", "Wav2Vec2ForPreTraining");
  config.update({{"codevector_dim", 255}, {"num_codevector_groups", 2}});
  const std::string refusal = refusal_of([&] { (void)spec_of(config); });
  CHECK(refusal.find("255") != std::string::npos);
  CHECK(refusal.find("num_codevector_groups 2") != std::string::npos);
}

TEST_CASE("sizes of a head of pretraining are not read by other classes") {
  json config = of_class("unispeech", "UniSpeechForCTC");
  config["num_ctc_classes"] = 0;
  CHECK_NOTHROW((void)spec_of(config));
  config["architectures"] = {"UniSpeechForPreTraining"};
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("num_ctc_classes") != std::string::npos);
}

// T5GemmaForSequenceClassification, transformers, models/t5gemma: _shift_right.
TEST_CASE("T5Gemma's classifiers run with the encoder alone") {
  for (const char* const name :
       {"T5GemmaForSequenceClassification", "T5GemmaForTokenClassification"}) {
    CAPTURE(name);
    json config = of_class("t5gemma", name);
    CHECK(spec_of(config).not_run.find("to the right") != std::string::npos);
    config["is_encoder_decoder"] = false;
    CHECK(spec_of(config).not_run.empty());
  }
  CHECK(spec_of(of_class("t5gemma", "T5GemmaForConditionalGeneration")).not_run.empty());
}

TEST_CASE("only dots.llm1 names its balanced routing in scoring_func") {
  json config{{"model_type", "deepseek_v3"}, {"scoring_func", "noaux_tc"}};
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("scoring_func") != std::string::npos);
  config["scoring_func"] = "sigmoid";
  CHECK_NOTHROW((void)spec_of(config));
  json dots{{"model_type", "dots1"}, {"n_routed_experts", 8}, {"num_experts_per_tok", 2}};
  for (const char* const name : {"noaux_tc", "sigmoid"}) {
    dots["scoring_func"] = name;
    CHECK_NOTHROW((void)spec_of(dots));
  }
  dots["scoring_func"] = "softmax";
  CHECK(refusal_of([&] { (void)spec_of(dots); }).find("scoring_func") != std::string::npos);
}

TEST_CASE("a classifier that Hunyuan's class lacks is refused") {
  json config{{"model_type", "hunyuan_v1_moe"}, {"add_classification_head", false}};
  CHECK_NOTHROW((void)spec_of(config));
  config["add_classification_head"] = true;
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("add_classification_head") !=
        std::string::npos);
}
