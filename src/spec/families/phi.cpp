// Phi-1 to Phi-2: one LayerNorm per layer, parallel attention and FFN, biases everywhere (arXiv
// 2306.11644).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_phi(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.rope.partial_rotary_factor = 0.5;
  defaults.bias = BiasRule::all;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::gelu_new;
  read_decoder(config, spec, defaults);
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

constexpr NameRule kPhi[] = {
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.dense.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.fc2.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

}  // namespace

std::vector<Family> phi_families() {
  return {{.model_types = {"phi"},
           .classes = llama_classes("Phi"),
           .reader = read_phi,
           .names = llama_names({kPhi}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "phi2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_partial_rotary}})}};
}

}  // namespace headroom::detail
