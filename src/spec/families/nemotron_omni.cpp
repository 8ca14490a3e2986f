// Nemotron 3 Nano Omni: Nemotron-H with C-RADIO and Parakeet (NVIDIA; transformers,
// models/nemotron_h_omni).
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {

std::vector<Family> nemotron_omni_families() {
  const Wrapper of_class{.model_types = {"nemotron_h_omni"},
                         .classes = {"NemotronH_Omni_Reasoning_V3"},
                         .bare_classes = {},
                         .text_type = "nemotron_h",
                         .count_towers = count_nemotron_omni_towers,
                         .tying = HeadTying::never};
  Family family = wrapper_family(of_class);
  family.reader = [of_class](ConfigReader& config, ModelSpec& spec) {
    Wrapper wrapper = of_class;
    if (!config.has("text_config") && config.has("llm_config")) wrapper.text_key = "llm_config";
    read_wrapped_model(config, spec, wrapper);
  };
  return {family};
}

}  // namespace headroom::detail
