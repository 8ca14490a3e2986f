// StarCoder2: Llama with LayerNorm, biases and a plain FFN (arXiv 2402.19173).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_starcoder2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 2;
  defaults.max_position_embeddings = 4096;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::gelu_tanh;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  const bool bias = config.flag_or({"use_bias"}, true);
  stack.self_attention.qkv_bias = bias;
  stack.self_attention.output_bias = bias;
  stack.ffn.bias = bias;
  stack.self_attention.window = read_window(config, 0);
  stack.dropout.embedding = config.probability_or({"embedding_dropout"}, 0);
  stack.dropout.attention_output = config.probability_or({"residual_dropout"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  config.expect_flag("scale_attn_weights", true);
  // Published configs inherit these from the previous family; the class reads hidden_act and
  // norm_epsilon.
  config.ignore({"activation_function", "layer_norm_epsilon", "attention_softmax_in_fp32",
                 "scale_attention_softmax_in_fp32"});
  config.expect_text("mlp_type", "default");
  config.expect_text("norm_type", "layer_norm");
}

constexpr NameRule kStarcoder2[] = {
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.c_fc.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.c_proj.%"},
};

}  // namespace

std::vector<Family> starcoder2_families() {
  return {{.model_types = {"starcoder2"},
           .classes = decoder_classes("Starcoder2", {.tied = true, .float32_logits = true}),
           .reader = read_starcoder2,
           .names = llama_names({kStarcoder2}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "starcoder2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "norm_epsilon"}},
                              .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
