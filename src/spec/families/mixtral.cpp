// Mixtral: Mistral with 8 experts in every layer, 2 per token (arXiv 2401.04088).
#include "mixtral.h"

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {

void read_mixtral(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e6;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.window = read_window(config, 0);
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 8, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.normalise = true;
  stack.ffn.experts = experts;
}

std::vector<Family> mixtral_families() {
  return {{.model_types = {"mixtral"},
           .classes = llama_classes("Mixtral"),
           .reader = read_mixtral,
           .names = llama_names({mixtral_expert_rules(), query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::interleaved_heads,
                            {{.name = "llama",
                              .needs = "expert_count",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_local_experts"}}}})}};
}

}  // namespace headroom::detail
