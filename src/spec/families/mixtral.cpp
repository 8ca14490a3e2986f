// Mixtral: Mistral with 8 experts in every layer, of which a token takes 2 (arXiv 2401.04088).
#include "../decoder.h"

namespace headroom::detail {

void read_mixtral(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Mixtral";
  family.num_key_value_heads = 8;
  family.max_position_embeddings = 131072;
  family.norm_eps = 1e-5;
  family.rope.theta = 1e6;
  family.bias = BiasRule::none;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.window = read_window(config, 0);
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 8, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.normalise = true;
  stack.ffn.experts = experts;
}

}  // namespace headroom::detail
