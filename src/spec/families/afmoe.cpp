// Trinity (AFMoE): norms before and after each part, gated attention with norms on query and key
// heads, RoPE in windowed layers only, sigmoid routing (Arcee, Trinity).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_afmoe_attention(ConfigReader& config, StackSpec& stack) {
  const std::int64_t period = config.size_or({"global_attn_every_n_layers"}, 4);
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.self_attention.output_gate = ContextGate::sigmoid;
  const WindowSpec window = read_window(config, 1024);
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
  vary_layers(stack, windowed,
              [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windowed, window);
}

ExpertsSpec read_afmoe_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 64, 6});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 1408);
  experts.shared_intermediate_size =
      product(config, "num_shared_experts", config.count_or({"num_shared_experts"}, 2),
              experts.intermediate_size);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.correction_bias_is_parameter = true;  // registered as one, without a gradient
  experts.normalise = config.flag_or({"route_norm"}, true);
  experts.scaling_factor = config.number_or({"route_scale"}, 1);
  config.expect_text("score_func", "sigmoid");
  config.expect_number("n_group", 1);
  config.expect_number("topk_group", 1);
  config.expect_number("num_expert_groups", 1);
  config.expect_number("num_limited_groups", 1);
  config.ignore({"load_balance_coeff", "use_grouped_mm"});
  return experts;
}

void read_afmoe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 16384;
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  config.expect_flag("attention_bias", false);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::sandwich;
  if (config.flag_or({"mup_enabled"}, false)) {
    spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  }
  const std::int64_t dense = config.count_or({"num_dense_layers"}, 1);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) routed.push_back(layer >= dense);
  read_afmoe_attention(config, stack);
  set_experts(stack, routed, read_afmoe_experts(config));
}

constexpr NameRule kAfmoe[] = {
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.gate_proj.%"},
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.pre_mlp_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_mlp_layernorm.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.expert_bias"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.gate.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_experts.down_proj.%"},
};

}  // namespace

std::vector<Family> afmoe_families() {
  return {{.model_types = {"afmoe"},
           .classes = llama_classes("Afmoe"),
           .reader = read_afmoe,
           .names = llama_names({kAfmoe, routed_expert_rules(), query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "afmoe",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_experts"},
                                      {"expert_shared_count", "num_shared_experts"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"leading_dense_block_count", "num_dense_layers"},
                                      {"expert_weights_norm", "route_norm"},
                                      {"expert_weights_scale", "route_scale"},
                                      {"attention.sliding_window", "sliding_window"}},
                              .constants = {{"mup_enabled", "true"}},
                              .head_dim = GgufHeadDim::always}})}};
}

}  // namespace headroom::detail
