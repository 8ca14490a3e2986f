// Phi-1 to Phi-2: one LayerNorm a layer, attention and network beside each other, biases everywhere
// (arXiv 2306.11644).
#include "../decoder.h"

namespace headroom::detail {

void read_phi(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Phi";
  family.norm = {NormKind::layer_norm, true};
  family.norm_eps = 1e-5;
  family.rope.partial_rotary_factor = 0.5;
  family.bias = BiasRule::all;
  family.ffn = FfnKind::plain;
  family.activation = ActivationKind::gelu_new;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.residual = ResidualKind::parallel_one_norm;
  stack.ffn.bias = true;
  if (config.flag_or({"qk_layernorm"}, false)) {
    stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  }
  if (spec.head.language_model) spec.head.language_model->bias = true;
  stack.dropout.embedding = config.probability_or({"embd_pdrop"}, 0);
  stack.dropout.attention_output = config.probability_or({"resid_pdrop"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
}

}  // namespace headroom::detail
