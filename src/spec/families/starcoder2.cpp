// StarCoder2: Llama with LayerNorm, biases and a plain network (arXiv 2402.19173).
#include "../decoder.h"

namespace headroom::detail {

void read_starcoder2(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Starcoder2";
  family.tied = true;
  family.num_key_value_heads = 2;
  family.max_position_embeddings = 4096;
  family.norm = {NormKind::layer_norm, true};
  family.norm_eps = 1e-5;
  family.bias = BiasRule::none;
  family.ffn = FfnKind::plain;
  family.activation = ActivationKind::gelu_tanh;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  const bool bias = config.flag_or({"use_bias"}, true);
  stack.self_attention.qkv_bias = bias;
  stack.self_attention.output_bias = bias;
  stack.ffn.bias = bias;
  stack.self_attention.window = read_window(config, 0);
  stack.dropout.embedding = config.probability_or({"embedding_dropout"}, 0);
  stack.dropout.attention_output = config.probability_or({"residual_dropout"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  config.expect("scale_attn_weights", true);
  // What published configs carry along from the family before; the class reads hidden_act and
  // norm_epsilon.
  config.ignore({"activation_function", "layer_norm_epsilon", "attention_softmax_in_fp32",
                 "scale_attention_softmax_in_fp32"});
  config.expect("mlp_type", "default");
  config.expect("norm_type", "layer_norm");
}

}  // namespace headroom::detail
