// BitNet b1.58: Llama with a norm before each output projection (Microsoft, arXiv 2402.17764;
// transformers, models/bitnet).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_bitnet(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 5;
  defaults.rope.theta = 5e5;
  defaults.norm_eps = 1e-5;
  defaults.activation = ActivationKind::relu_squared;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.context_norm = stack.norm;
  stack.ffn.inner_norm = stack.norm;
  if (config.has("quantization_config")) {
    spec.not_run = "its layers quantise what they multiply, which has no kernel";
  }
}

constexpr NameRule kBitnet[] = {
    {"decoder.layers.attention.context_norm.%", "layers.{}.self_attn.attn_sub_norm.%"},
    {"decoder.layers.mlp.inner_norm.%", "layers.{}.mlp.ffn_sub_norm.%"},
};

}  // namespace

std::vector<Family> bitnet_families() {
  return {{.model_types = {"bitnet"},
           .classes = llama_classes("BitNet"),
           .reader = read_bitnet,
           .names = llama_names({kBitnet}),
           .gguf = None("its GGUF files have ternary weights")}};
}

}  // namespace headroom::detail
