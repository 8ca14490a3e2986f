// GPT-NeoX and Pythia: attention and network beside each other, each with a norm of its own, rotary
// positions of a quarter of each head (arXiv 2204.06745, 2304.01373).
#include "../decoder.h"

namespace headroom::detail {

void read_gpt_neox(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "GPTNeoX";
  family.norm = {NormKind::layer_norm, true};
  family.norm_eps = 1e-5;
  family.rope.partial_rotary_factor = 0.25;
  family.bias_when_absent = true;
  family.ffn = FfnKind::plain;
  family.activation = ActivationKind::gelu;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = true;
  if (config.flag_or({"use_parallel_residual"}, true)) {
    stack.residual = ResidualKind::parallel_two_norms;
  }
  const double dropout = config.probability_or({"hidden_dropout"}, 0);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
}

}  // namespace headroom::detail
