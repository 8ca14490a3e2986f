// Flint: Qwen3-MoE's layers with attention sinks, RoPE in windowed layers only, a shared expert
// without a gate, and experts by sigmoids (Recursive SI; transformers, models/flint).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Without layer_types, the first two layers, every fourth one and the last see all tokens.
void read_flint_attention(ConfigReader& config, StackSpec& stack) {
  constexpr std::int64_t kPeriod = 4;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.self_attention.sinks = true;
  const WindowSpec window = read_required_window(config, 513);
  const std::int64_t last = stack.num_layers - 1;
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers,
      [&](std::int64_t layer) { return layer > 1 && layer % kPeriod != 1 && layer != last; });
  vary_layers(stack, windowed,
              [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windowed, window);
}

ExpertsSpec read_flint_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 256, 6});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 512);
  experts.shared_intermediate_size =
      config.size_or_of_class({"shared_expert_intermediate_size"}, 1024);
  experts.scoring = RouterScoring::sigmoid;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  return experts;
}

void read_flint(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 262144;
  defaults.norm_eps = 1e-6;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  read_flint_attention(config, stack);
  spread_qwen_experts(config, stack, read_flint_experts(config), {0, 1});
}

constexpr NameRule kFlint[] = {
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.sinks"},
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.softmax_offset"},  // as published
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_expert.down_proj.%"},
};

}  // namespace

std::vector<Family> flint_families() {
  return {{.model_types = {"flint"},
           .classes = llama_classes("Flint"),
           .reader = read_flint,
           .names = llama_names({kFlint, routed_expert_rules(), query_key_norm_rules()}),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
