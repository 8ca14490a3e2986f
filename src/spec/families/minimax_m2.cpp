// MiniMax-M2: sigmoid routing with a correction bias, one norm over all queries and one over all
// keys, RoPE on half of each head (MiniMax, MiniMax-M2).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_minimax_m2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 196608;
  defaults.rope.theta = 5e6;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  spec.position.rope.rotary_dim = config.count_or({"rotary_dim"}, spec.position.rope.rotary_dim);
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::all_heads};
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 256, 8});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.normalise = true;
  stack.ffn.experts = experts;
  config.expect_text("scoring_func", "sigmoid");
  config.expect_flag("use_qk_norm", true);
  config.expect_text("qk_norm_type", "per_layer");
  config.expect_flag("use_routing_bias", true);
  config.expect_number("shared_intermediate_size", 0);
  config.ignore({"attn_type_list", "use_mtp", "num_mtp_modules", "mtp_transformer_layers",
                 "layernorm_full_attention_beta", "layernorm_linear_attention_beta",
                 "layernorm_mlp_beta", "mlp_intermediate_size", "shared_moe_mode",
                 "attn_window_size", "swa_rope_theta", "full_attn_alpha", "layer_types",
                 "sliding_window", "mlp_bias", "attention_bias"});
}

}  // namespace

std::vector<Family> minimax_m2_families() {
  return {{.model_types = {"minimax_m2"},
           .classes = llama_classes("MiniMaxM2"),
           .reader = read_minimax_m2,
           .names = llama_names({mixtral_expert_rules(), query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "minimax-m2",
                              .common = gguf_expert_keys(),
                              .own = {{"expert_feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_local_experts"},
                                      {"rope.dimension_count", "rotary_dim"}},
                              .head_dim = GgufHeadDim::always}})}};
}

}  // namespace headroom::detail
