// Multimodal models whose text model is another family: LLaVA, LLaVA-NeXT and LLaVA-OneVision,
// Mistral Small 3.1, LightOnOCR, PaliGemma, Idefics3 and SmolVLM, InternVL, LFM2-VL, Command A
// Vision, Aya Vision, GLM-4.1V, Kimi K2.5, Qwen2-Audio, Voxtral.
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "mistral3.h"

namespace headroom::detail {
namespace {

// Sizes of LlamaConfig, which the first LLaVA files leave out.
constexpr std::string_view kLlamaSizes = R"({"hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000})";

constexpr std::string_view kInternvlTraining[] = {"ep_size", "micro_forward", "skip_checkpoint",
                                                  "use_deepep", "debug"};

/// MiniCPM-V: the text model's keys stand beside vision_config, and its family follows from the
/// version (OpenBMB; modeling_minicpmv.py).
Family minicpmv_family() {
  const Wrapper qwen2{.model_types = {"minicpmv"},
                      .classes = {"MiniCPMV"},
                      .bare_classes = {},
                      .text_type = "qwen2",
                      .count_towers = count_minicpmv_tower,
                      .tying = HeadTying::text};
  Family family = wrapper_family(qwen2);
  family.reader = [qwen2](ConfigReader& config, ModelSpec& spec) {
    const double version = config.number_or({"version"}, 2.6);
    Wrapper wrapper = qwen2;
    if (version == 4.0) wrapper.text_type = "llama";
    if (version == 4.5) wrapper.text_type = "qwen3";
    if (version != 2.6 && version != 4.0 && version != 4.5) {
      config.fail("version", "is of a MiniCPM-V that is not supported", "use 2.6, 4.0 or 4.5");
    }
    read_wrapped_text(config, spec, wrapper);
    note_absent_tower(config, wrapper.absent_tower, spec);
    wrapper.count_towers(config, spec);
    read_tower_tokens(config, spec);
  };
  return family;
}

/// Qwen3-ASR's aligner: a time for every token, by a projection without a bias.
ModelClasses forced_aligner_classes() {
  return ModelClasses{{{"Qwen3ASRForTokenClassification", [](ConfigReader& config) {
                          HeadSpec head = every_token_classifier(config);
                          head.classifier->bias =
                              config.flag_or({"token_classification_bias"}, false);
                          return head;
                        }}}};
}

}  // namespace

Family mistral3_family() {
  return wrapper_family({.model_types = {"mistral3"},
                         .classes = {"Mistral3ForConditionalGeneration"},
                         .bare_classes = {"Mistral3Model"},
                         .text_type = "mistral",
                         .count_towers = read_mistral3_tower,
                         .tying = HeadTying::whole_else_tied,
                         .names = wrapped_pixtral_names(mistral3_projector_rules())});
}

std::vector<Family> image_text_families() {
  return {wrapper_family({.model_types = {"llava"},
                          .classes = {"LlavaForConditionalGeneration"},
                          .bare_classes = {"LlavaModel"},
                          .text_type = "llama",
                          .count_towers = read_llava_tower,
                          .tying = HeadTying::either,
                          .text_defaults = kLlamaSizes,
                          .names = wrapped_pixtral_names(two_layer_projector_rules())}),
          wrapper_family({.model_types = {"llava_next"},
                          .classes = {"LlavaNextForConditionalGeneration"},
                          .bare_classes = {"LlavaNextModel"},
                          .text_type = "llama",
                          .count_towers = read_llava_next_tower,
                          .tying = HeadTying::whole,
                          .text_defaults = kLlamaSizes,
                          .names = wrapped_pixtral_names(tiled_projector_rules())}),
          wrapper_family({.model_types = {"llava_next_video"},
                          .classes = {"LlavaNextVideoForConditionalGeneration"},
                          .bare_classes = {"LlavaNextVideoModel"},
                          .text_type = "llama",
                          .count_towers = read_llava_next_video_tower,
                          .tying = HeadTying::either,
                          .text_defaults = kLlamaSizes,
                          .names = wrapped_pixtral_names(tiled_projector_rules())}),
          wrapper_family({.model_types = {"vipllava"},
                          .classes = {"VipLlavaForConditionalGeneration"},
                          .bare_classes = {"VipLlavaModel"},
                          .text_type = "llama",
                          .count_towers = read_vipllava_tower,
                          .tying = HeadTying::whole,
                          .text_defaults = kLlamaSizes,
                          .names = wrapped_vipllava_names()}),
          wrapper_family({.model_types = {"video_llava"},
                          .classes = {"VideoLlavaForConditionalGeneration"},
                          .bare_classes = {"VideoLlavaModel"},
                          .text_type = "llama",
                          .count_towers = read_video_llava_tower,
                          .tying = HeadTying::whole,
                          .text_defaults = kLlamaSizes,
                          .names = wrapped_video_llava_names()}),
          wrapper_family({.model_types = {"llava_onevision"},
                          .classes = {"LlavaOnevisionForConditionalGeneration"},
                          .bare_classes = {"LlavaOnevisionModel"},
                          .text_type = "qwen2",
                          .count_towers = read_llava_onevision_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_pixtral_names(tiled_projector_rules())}),
          mistral3_family(),
          minicpmv_family(),
          wrapper_family({.model_types = {"lighton_ocr"},
                          .classes = {"LightOnOcrForConditionalGeneration"},
                          .bare_classes = {"LightOnOcrModel"},
                          .text_type = "qwen3",
                          .count_towers = read_mistral3_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_lighton_ocr_names()}),
          wrapper_family({.model_types = {"paligemma"},
                          .classes = {"PaliGemmaForConditionalGeneration"},
                          .bare_classes = {"PaliGemmaModel"},
                          .text_type = "gemma",
                          .count_towers = read_paligemma_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_clip_names(paligemma_projector_rules())}),
          wrapper_family(
              {.model_types = {"idefics3", "smolvlm"},
               .classes = {"Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"},
               .bare_classes = {"Idefics3Model", "SmolVLMModel"},
               .text_type = "llama",
               .count_towers = read_idefics3_tower,
               .tying = HeadTying::whole,
               .names = wrapped_clip_names(idefics3_projector_rules())}),
          wrapper_family({.model_types = {"internvl"},
                          .classes = {"InternVLForConditionalGeneration"},
                          .bare_classes = {"InternVLModel"},
                          .text_type = "qwen2",
                          .count_towers = read_internvl_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_internvl_names(),
                          .unread_text_keys = kInternvlTraining}),
          wrapper_family({.model_types = {"internvl_chat"},
                          .classes = {"InternVLChatModel"},
                          .bare_classes = {},
                          .text_type = "qwen2",
                          .count_towers = read_internvl_chat_tower,
                          .tying = HeadTying::text,
                          .names = wrapped_internvl_chat_names(),
                          .text_key = "llm_config",
                          .unread_text_keys = kInternvlTraining}),
          wrapper_family({.model_types = {"lfm2_vl", "lfm2-vl"},
                          .classes = {"Lfm2VlForConditionalGeneration"},
                          .bare_classes = {"Lfm2VlModel"},
                          .text_type = "lfm2",
                          .count_towers = read_lfm2_vl_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_clip_names(lfm2_vl_projector_rules())}),
          wrapper_family({.model_types = {"cohere2_vision"},
                          .classes = {"Cohere2VisionForConditionalGeneration"},
                          .bare_classes = {"Cohere2VisionModel"},
                          .text_type = "cohere2",
                          .count_towers = read_cohere2_vision_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_clip_names(cohere_projector_rules())}),
          wrapper_family({.model_types = {"aya_vision"},
                          .classes = {"AyaVisionForConditionalGeneration"},
                          .bare_classes = {"AyaVisionModel"},
                          .text_type = "cohere2",
                          .count_towers = read_aya_vision_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_clip_names(cohere_projector_rules())}),
          wrapper_family({.model_types = {"glm4v"},
                          .classes = {"Glm4vForConditionalGeneration"},
                          .bare_classes = {"Glm4vModel"},
                          .text_type = "glm4v_text",
                          .count_towers = read_glm4v_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_glm4v_names()}),
          wrapper_family({.model_types = {"glm4v_moe"},
                          .classes = {"Glm4vMoeForConditionalGeneration"},
                          .bare_classes = {"Glm4vMoeModel"},
                          .text_type = "glm4v_moe_text",
                          .count_towers = read_glm4v_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_glm4v_names()}),
          wrapper_family({.model_types = {"glm46v"},
                          .classes = {"Glm46VForConditionalGeneration"},
                          .bare_classes = {"Glm46VModel"},
                          .text_type = "glm4v_text",
                          .count_towers = read_glm4v_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_glm4v_names()}),
          wrapper_family(
              {.model_types = {"kimi_k25"},
               .classes = {"KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration"},
               .bare_classes = {"Kimi_K25Model"},
               .text_type = "deepseek_v3",
               .count_towers = read_kimi_tower,
               .tying = HeadTying::whole_else_tied,
               .names = wrapped_kimi_names()}),
          wrapper_family({.model_types = {"kimi_vl"},
                          .classes = {"KimiVLForConditionalGeneration"},
                          .bare_classes = {},
                          .text_type = "deepseek_v3",
                          .count_towers = read_kimi_tower,
                          .tying = HeadTying::text,
                          .names = wrapped_kimi_vl_names()}),
          wrapper_family({.model_types = {"exaone4_5"},
                          .classes = {"Exaone4_5_ForConditionalGeneration"},
                          .bare_classes = {"Exaone4_5_Model"},
                          .text_type = "exaone4",
                          .count_towers = read_exaone4_5_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_qwen_names()}),
          wrapper_family({.model_types = {"hyperclovax_vision_v2"},
                          .classes = {"HyperCLOVAXVisionV2ForConditionalGeneration"},
                          .bare_classes = {"HyperCLOVAXVisionV2Model"},
                          .text_type = "hyperclovax",
                          .count_towers = read_hyperclovax_vision_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_hyperclovax_names()}),
          wrapper_family({.model_types = {"musicflamingo"},
                          .classes = {"MusicFlamingoForConditionalGeneration"},
                          .bare_classes = {"MusicFlamingoModel"},
                          .text_type = "qwen2",
                          .count_towers = read_musicflamingo_tower,
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_audioflamingo3_names()}),
          wrapper_family({.model_types = {"audioflamingo3"},
                          .classes = {"AudioFlamingo3ForConditionalGeneration"},
                          .bare_classes = {"AudioFlamingo3Model"},
                          .text_type = "qwen2",
                          .count_towers = read_audioflamingo3_tower,
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_audioflamingo3_names()}),
          wrapper_family({.model_types = {"qwen2_audio"},
                          .classes = {"Qwen2AudioForConditionalGeneration"},
                          .bare_classes = {"Qwen2AudioModel"},
                          .text_type = "qwen2",
                          .count_towers = read_qwen2_audio_tower,
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_qwen2_audio_names()}),
          wrapper_family({.model_types = {"video_llama_3"},
                          .classes = {"VideoLlama3ForConditionalGeneration"},
                          .bare_classes = {"VideoLlama3Model"},
                          .text_type = "qwen2",
                          .count_towers = read_video_llama3_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_video_llama3_names()}),
          wrapper_family({.model_types = {"idefics2"},
                          .classes = {"Idefics2ForConditionalGeneration"},
                          .bare_classes = {"Idefics2Model"},
                          .text_type = "mistral",
                          .count_towers = count_idefics2_tower,
                          .tying = HeadTying::whole}),
          wrapper_family({.model_types = {"glmasr"},
                          .classes = {"GlmAsrForConditionalGeneration"},
                          .bare_classes = {"GlmAsrModel"},
                          .text_type = "llama",
                          .count_towers = read_glm_asr_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_glm_asr_names()}),
          wrapper_family({.model_types = {"qwen3_asr"},
                          .classes = {"Qwen3ASRForConditionalGeneration"},
                          .bare_classes = {"Qwen3ASRModel"},
                          .text_type = "qwen3",
                          .count_towers = read_qwen3_asr_tower,
                          .tying = HeadTying::whole_else_tied,
                          .names = wrapped_qwen3_asr_names(),
                          .classifiers = forced_aligner_classes()}),
          wrapper_family({.model_types = {"voxtral"},
                          .classes = {"VoxtralForConditionalGeneration"},
                          .bare_classes = {"VoxtralModel"},
                          .text_type = "llama",
                          .count_towers = read_voxtral_tower,
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_voxtral_names()})};
}

}  // namespace headroom::detail
