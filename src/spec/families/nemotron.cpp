// Nemotron: Llama with LayerNorms that multiply by 1 + w, a plain FFN with a squared ReLU, and RoPE
// on half of each head (arXiv 2402.16819, 2407.14679).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_nemotron(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.norm = {NormKind::layer_norm, true, 1e-5, NormWeight::one_plus};
  defaults.norm_eps = config.number_or({"norm_eps"}, 1e-5);
  defaults.rope.partial_rotary_factor = 0.5;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::relu_squared;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
}

}  // namespace

std::vector<Family> nemotron_families() {
  return {{.model_types = {"nemotron"},
           .classes = llama_classes("Nemotron"),
           .reader = read_nemotron,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::norms_plus_one,
                            {{.name = "nemotron",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "norm_eps"}},
                              .flags = gguf_llama_biases(),
                              .finish = finish_partial_rotary}})}};
}

}  // namespace headroom::detail
