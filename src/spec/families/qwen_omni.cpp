// Qwen2.5-Omni and Qwen3-Omni (arXiv 2503.20215, 2509.17765): the thinker, which reads text, images
// and sound and writes text. The talker and the vocoder, which speak, are left out.
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

/// Reads the thinker inside the config of the whole model.
FamilyReader inside_whole(FamilyReader thinker) {
  return [thinker = std::move(thinker)](ConfigReader& config, ModelSpec& spec) {
    const bool is_described = config.has("thinker_config");
    ConfigReader own = config.object_or_empty("thinker_config");
    if (!is_described) {
      spec.assumptions.emplace_back(
          "the config describes no thinker: the thinker has the default sizes");
    }
    own.ignore({"model_type", "architectures"});
    thinker.read(own, spec);
    read_common_keys(own, spec);
    own.finish();
    config.ignore({"talker_config", "token2wav_config", "code2wav_config", "enable_audio_output",
                   "enable_talker"});
    // Tokens of turns and of speech.
    config.ignore({"assistant_token_id", "system_token_id", "user_token_id", "im_start_token_id",
                   "im_end_token_id", "tts_bos_token_id", "tts_eos_token_id", "tts_pad_token_id"});
    spec.assumptions.emplace_back("the talker and the vocoder are left out");
  };
}

/// The whole model, whose thinker is `wrapper`.
Family whole_family(const Wrapper& wrapper, ModelTypes types, std::vector<std::string> classes) {
  Wrapper whole = wrapper;
  whole.model_types = std::move(types);
  whole.classes = std::move(classes);
  whole.bare_classes.clear();
  Family family = wrapper_family(whole);
  family.reader = inside_whole(std::move(family.reader));
  return family;
}

}  // namespace

std::vector<Family> qwen_omni_families() {
  const Wrapper second{.model_types = {"qwen2_5_omni_thinker"},
                       .classes = {"Qwen2_5OmniThinkerForConditionalGeneration"},
                       .bare_classes = {"Qwen2_5OmniThinkerModel"},
                       .text_type = "qwen2_5_omni_text",
                       .count_towers = read_qwen2_5_omni_towers,
                       .tying = HeadTying::whole,
                       .names = wrapped_qwen2_5_omni_names()};
  const Wrapper third{.model_types = {"qwen3_omni_moe_thinker"},
                      .classes = {"Qwen3OmniMoeThinkerForConditionalGeneration"},
                      .bare_classes = {"Qwen3OmniMoeThinkerModel"},
                      .text_type = "qwen3_omni_moe_text",
                      .count_towers = read_qwen3_omni_towers,
                      .tying = HeadTying::whole,
                      .names = wrapped_qwen3_omni_names()};
  return {wrapper_family(second),
          whole_family(second, {"qwen2_5_omni"},
                       {"Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel"}),
          wrapper_family(third),
          whole_family(third, {"qwen3_omni_moe"}, {"Qwen3OmniMoeForConditionalGeneration"})};
}

}  // namespace headroom::detail
