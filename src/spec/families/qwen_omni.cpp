// Qwen2.5-Omni and Qwen3-Omni (arXiv 2503.20215, 2509.17765): the thinker, which reads text, images
// and sound and writes text. The talker and the vocoder, which speak, are left out. Qwen3-ASR is a
// thinker alone.
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

/// Reads the thinker inside the config of the whole model.
void read_thinker(const FamilyReader& thinker, ConfigReader& config, ModelSpec& spec) {
  ConfigReader own = config.object_or_empty("thinker_config");
  own.ignore({"model_type", "architectures"});
  thinker.read(own, spec);
  read_common_keys(own, spec);
  own.finish();
}

/// Reads the whole model without what speaks.
FamilyReader inside_whole(FamilyReader thinker) {
  return [thinker = std::move(thinker)](ConfigReader& config, ModelSpec& spec) {
    if (!config.has("thinker_config")) {
      spec.assumptions.emplace_back(
          "the config describes no thinker: the thinker has the default sizes");
    }
    read_thinker(thinker, config, spec);
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

/// Qwen3-ASR's aligner: a time for every token, by a projection without a bias.
ModelClasses forced_aligner_classes() {
  return ModelClasses{{{"Qwen3ASRForTokenClassification", [](ConfigReader& config) {
                          HeadSpec head = every_token_classifier(config);
                          head.classifier->bias =
                              config.flag_or({"token_classification_bias"}, false);
                          return head;
                        }}}};
}

/// Qwen3-ASR. Its published files describe a thinker, those of transformers the thinker's parts.
Family asr_family() {
  Family family = wrapper_family({.model_types = {"qwen3_asr"},
                                  .classes = {"Qwen3ASRForConditionalGeneration"},
                                  .bare_classes = {"Qwen3ASRModel"},
                                  .text_type = "qwen3",
                                  .count_towers = read_qwen3_asr_tower,
                                  .tying = HeadTying::whole_else_tied,
                                  .names = wrapped_qwen3_asr_names(),
                                  .classifiers = forced_aligner_classes()});
  family.reader = [parts = std::move(family.reader)](ConfigReader& config, ModelSpec& spec) {
    if (!config.has("thinker_config")) return parts.read(config, spec);
    config.ignore({"support_languages"});
    read_thinker(parts, config, spec);
  };
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
          whole_family(third, {"qwen3_omni_moe"}, {"Qwen3OmniMoeForConditionalGeneration"}),
          asr_family()};
}

}  // namespace headroom::detail
