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

constexpr NameRule kBitnetGguf[] = {
    {"layers.attention.context_norm.%", "blk.{}.attn_sub_norm.%"},
    {"layers.mlp.inner_norm.%", "blk.{}.ffn_sub_norm.%"},
};

/// Files without an activation have SiLU, as the first models (llama.cpp, src/models/bitnet.cpp).
void finish_bitnet(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_text("hidden_act", metadata.text("hidden_activation").value_or("silu"));
}

}  // namespace

std::vector<Family> bitnet_families() {
  return {{.model_types = {"bitnet"},
           .classes = llama_classes("BitNet"),
           .reader = read_bitnet,
           .names = llama_names({kBitnet}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "bitnet",
                              .common = gguf_rms_norm_keys(),
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_bitnet}},
                            {kBitnetGguf})}};
}

}  // namespace headroom::detail
