// Multimodal models whose text model is another family: LLaVA, LLaVA-NeXT and LLaVA-OneVision,
// Mistral Small 3.1, PaliGemma, Idefics3 and SmolVLM, InternVL, GLM-4.1V, Kimi K2.5, Voxtral.
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

// Sizes of LlamaConfig, which the first LLaVA files leave out.
constexpr std::string_view kLlamaSizes = R"({"hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000})";

}  // namespace

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
          wrapper_family({.model_types = {"llava_onevision"},
                          .classes = {"LlavaOnevisionForConditionalGeneration"},
                          .bare_classes = {"LlavaOnevisionModel"},
                          .text_type = "qwen2",
                          .count_towers = read_llava_onevision_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_pixtral_names(tiled_projector_rules())}),
          wrapper_family({.model_types = {"mistral3"},
                          .classes = {"Mistral3ForConditionalGeneration"},
                          .bare_classes = {"Mistral3Model"},
                          .text_type = "mistral",
                          .count_towers = read_mistral3_tower,
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_pixtral_names(mistral3_projector_rules())}),
          wrapper_family({.model_types = {"paligemma"},
                          .classes = {"PaliGemmaForConditionalGeneration"},
                          .bare_classes = {"PaliGemmaModel"},
                          .text_type = "gemma",
                          .count_towers = read_paligemma_tower,
                          .tying = HeadTying::whole_else_text,
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
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_internvl_names()}),
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
          wrapper_family(
              {.model_types = {"kimi_k25"},
               .classes = {"KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration"},
               .bare_classes = {"Kimi_K25Model"},
               .text_type = "deepseek_v3",
               .count_towers = read_kimi_tower,
               .tying = HeadTying::whole_else_text,
               .names = wrapped_kimi_names()}),
          wrapper_family({.model_types = {"voxtral"},
                          .classes = {"VoxtralForConditionalGeneration"},
                          .bare_classes = {"VoxtralModel"},
                          .text_type = "llama",
                          .count_towers = read_voxtral_tower,
                          .tying = HeadTying::whole_else_text,
                          .names = wrapped_voxtral_names()})};
}

}  // namespace headroom::detail
