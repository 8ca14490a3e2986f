// GPT-J: one norm a layer, attention without biases beside a network with them, interleaved rotary
// positions (Wang and Komatsuzaki 2021).
#include "../gpt.h"

namespace headroom::detail {

void read_gptj(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec language_model;
  language_model.bias = true;
  language_model.weight = config.flag_or({"tie_word_embeddings"}, false) ? WeightSharing::shared
                                                                         : WeightSharing::separate;
  read_decoder_architecture(config, spec, "GPTJ", "GPTJForCausalLM", language_model);
  read_gpt_sizes(config, spec, 2048);
  StackSpec& stack = *spec.decoder;
  stack.residual = ResidualKind::parallel_one_norm;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  spec.position.kind = PositionKind::rotary;
  spec.position.rope.layout = RopeLayout::interleaved;
  spec.position.rope.rotary_dim = config.size_or({"rotary_dim"}, 64);
  config.expect("rotary", true);
  config.ignore({"n_ctx"});  // the causal mask's size, once
  config.expect("scale_attn_weights", true);
}

}  // namespace headroom::detail
