// Kolibri 1: Qwen3-MoE's experts with a router of sigmoids of the chosen scores, and EXAONE 4's
// attention, with norms before and after each part (Aleph Alpha; transformers, models/kolibri1).
#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// RoPE in windowed layers only. Without layer_types, every fifth layer sees all tokens.
void read_kolibri_attention(ConfigReader& config, StackSpec& stack) {
  constexpr std::int64_t kPeriod = 5;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const WindowSpec window = read_required_window(config, 513);
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers, [](std::int64_t layer) { return (layer + 1) % kPeriod != 0; });
  vary_layers(stack, windowed,
              [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windowed, window);
}

ExpertsSpec read_kolibri_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 384, 6});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 512);
  experts.shared_intermediate_size =
      config.size_or_of_class({"shared_expert_intermediate_size"}, 512);
  experts.scoring = RouterScoring::sigmoid_of_chosen;
  experts.correction_bias = true;
  experts.normalise = config.flag_or({"norm_topk_prob"}, false);
  return experts;
}

void read_kolibri(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 262144;
  defaults.norm_eps = 1e-6;
  defaults.intermediate_size = 0;  // every layer has experts
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::sandwich;
  read_kolibri_attention(config, stack);
  set_experts(stack, std::vector<bool>(static_cast<std::size_t>(stack.num_layers), true),
              read_kolibri_experts(config));
}

/// Aleph Alpha's own names, beside those of the class.
constexpr NameRule kPublished[] = {
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_attn_norm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_ffn_norm.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.moe.router.expert_bias"},
};

}  // namespace

std::vector<Family> kolibri_families() {
  return {{.model_types = {"kolibri1"},
           .classes = llama_classes("Kolibri1"),
           .reader = read_kolibri,
           .names = llama_names({kPublished, glm_rules(), shared_expert_rules(),
                                 routed_expert_rules(), query_key_norm_rules()}),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
