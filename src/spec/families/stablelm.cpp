// StableLM: Llama with LayerNorm and RoPE on a quarter of each head (Stability AI, StableLM-3B-4E1T
// technical report).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// With the part of each head that RoPE turns, and the norms' epsilon, where the common keys of
/// them are absent.
void read_stablelm_layers(ConfigReader& config, ModelSpec& spec, double rotary_part,
                          double norm_eps) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = norm_eps;
  defaults.rope.partial_rotary_factor = rotary_part;
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

void read_stablelm(ConfigReader& config, ModelSpec& spec) {
  read_stablelm_layers(config, spec, 0.25, 1e-5);
}

/// The keys of the class that the first models were published with
/// (configuration_stablelm_epoch.py).
void read_stablelm_epoch(ConfigReader& config, ModelSpec& spec) {
  read_stablelm_layers(config, spec, config.number_or({"rope_pct"}, 0.25),
                       config.number_or({"norm_eps"}, 1e-5));
  const std::int64_t heads = spec.decoder->self_attention.num_attention_heads;
  config.expect_number("num_heads", static_cast<double>(heads));  // which the class does not read
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
                              .finish = finish_partial_rotary}})},
          {.model_types = {"stablelm_epoch"},
           .classes = llama_classes("StableLMEpoch"),
           .reader = read_stablelm_epoch,
           .names = llama_names({kHeadNorms}),
           .gguf = None("llama.cpp stores it under the name of StableLM")}};
}

}  // namespace headroom::detail
