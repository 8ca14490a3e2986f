// StableLM: Llama with LayerNorm and RoPE on a quarter of each head (Stability AI, StableLM-3B-4E1T
// technical report).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_stablelm(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.rope.partial_rotary_factor = 0.25;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.qkv_bias = config.flag_or({"use_qkv_bias"}, false);
  if (config.flag_or({"use_parallel_residual"}, false)) {
    stack.residual = ResidualKind::parallel_one_norm;
  }
  if (config.flag_or({"qk_layernorm"}, false)) {
    NormSpec norm = stack.norm;
    norm.bias = false;
    stack.self_attention.query_key_norm =
        QueryKeyNormSpec{norm, QueryKeyNormScope::each_head_own_weight};
  }
  stack.dropout.ffn_output = config.probability_or({"hidden_dropout"}, 0);
  // Keys of stablelm-2-12b that StableLmForCausalLM does not read.
  config.expect_flag("use_norm_bias", false);
  config.expect_number("rotary_scaling_factor", 1.0);
}

constexpr NameRule kHeadNorms[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.norms.{e}.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.norms.{e}.%"},
};

}  // namespace

std::vector<Family> stablelm_families() {
  return {{.model_types = {"stablelm"},
           .classes = llama_classes("StableLm"),
           .reader = read_stablelm,
           .names = llama_names({kHeadNorms}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "stablelm",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"use_parallel_residual", "use_parallel_residual"}},
                              .flags = {{"blk.0.attn_q.bias", "use_qkv_bias"},
                                        {"blk.0.attn_q_norm.weight", "qk_layernorm"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_partial_rotary}})}};
}

}  // namespace headroom::detail
