// Qwen2-VL to Qwen3.5 with their vision towers, and the text models inside them, which are Qwen2
// and Qwen3 with RoPE in three axes: equal for text, so plain RoPE.
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
std::vector<Family> qwen_vl_families() {
  return {wrapper_family({.model_types = {"qwen2_vl"},
                          .classes = {"Qwen2VLForConditionalGeneration"},
                          .bare_classes = {"Qwen2VLModel"},
                          .text_type = "qwen2_vl_text",
                          .count_towers = read_qwen2_vl_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_qwen_names()}),
          wrapper_family({.model_types = {"qwen2_5_vl"},
                          .classes = {"Qwen2_5_VLForConditionalGeneration"},
                          .bare_classes = {"Qwen2_5_VLModel"},
                          .text_type = "qwen2_5_vl_text",
                          .count_towers = read_qwen2_5_vl_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_qwen_names()}),
          wrapper_family({.model_types = {"qwen3_vl"},
                          .classes = {"Qwen3VLForConditionalGeneration"},
                          .bare_classes = {"Qwen3VLModel"},
                          .text_type = "qwen3_vl_text",
                          .count_towers = read_qwen3_vl_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_qwen_names()}),
          wrapper_family({.model_types = {"qwen3_vl_moe"},
                          .classes = {"Qwen3VLMoeForConditionalGeneration"},
                          .bare_classes = {"Qwen3VLMoeModel"},
                          .text_type = "qwen3_vl_moe_text",
                          .count_towers = read_qwen3_vl_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_qwen_names()}),
          wrapper_family(
              {.model_types = {"qwen3_5"},
               .classes = {"Qwen3_5ForConditionalGeneration"},
               .bare_classes = {"Qwen3_5Model"},
               .text_type = "qwen3_5_text",
               .count_towers = read_qwen3_5_tower,
               .tying = HeadTying::whole,
               .names = wrapped_qwen_names(),
               .classifiers = {{{"Qwen3_5ForSequenceClassification", last_token_classifier},
                                {"Qwen3_5ForTokenClassification", every_token_classifier}}}}),
          wrapper_family({.model_types = {"qwen3_5_moe"},
                          .classes = {"Qwen3_5MoeForConditionalGeneration"},
                          .bare_classes = {"Qwen3_5MoeModel"},
                          .text_type = "qwen3_5_moe_text",
                          .count_towers = read_qwen3_5_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_qwen_names()})};
}

}  // namespace headroom::detail
