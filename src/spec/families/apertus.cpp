// Apertus: Llama with a plain FFN, xIELU and a norm of queries and keys (Swiss AI Initiative,
// arXiv 2509.14233; transformers, models/apertus).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_apertus(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 65536;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 12e6;
  defaults.ffn = FfnKind::plain;
  const bool is_xielu = !config.has("hidden_act") || config.is_text("hidden_act", "xielu");
  if (is_xielu) defaults.fixed_activation = ActivationKind::xielu;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  // The published code builds the norms of queries and keys always; these flags repeat that.
  config.expect_flag("qk_norm", true);
  config.expect_flag("post_norm", false);
}

constexpr NameRule kApertus[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.feedforward_layernorm.%"},
    {"decoder.layers.mlp.activation.positive", "layers.{}.mlp.act_fn.alpha_p"},
    {"decoder.layers.mlp.activation.negative", "layers.{}.mlp.act_fn.alpha_n"},
    {"decoder.layers.mlp.activation.slope", "layers.{}.mlp.act_fn.beta"},
    {"decoder.layers.mlp.activation.bound", "layers.{}.mlp.act_fn.eps"},
};

/// Entries of lists in the metadata, which checkpoint::ModelFiles names as tensors.
constexpr NameRule kApertusGguf[] = {
    {"layers.mlp.activation.positive", "blk.{}.xielu.alpha_p"},
    {"layers.mlp.activation.negative", "blk.{}.xielu.alpha_n"},
    {"layers.mlp.activation.slope", "blk.{}.xielu.beta"},
    {"layers.mlp.activation.bound", "blk.{}.xielu.eps"},
};

}  // namespace

std::vector<Family> apertus_families() {
  return {{.model_types = {"apertus"},
           .classes = llama_classes("Apertus"),
           .reader = read_apertus,
           .names = llama_names({kApertus, query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "apertus",
                              .common = gguf_rms_norm_keys(),
                              .flags = gguf_llama_biases(),
                              .head_dim = GgufHeadDim::never}},
                            {kApertusGguf})}};
}

}  // namespace headroom::detail
