// StableLM: Llama with LayerNorm and rotary positions of a quarter of each head
// (Stability AI, StableLM-3B-4E1T technical report).
#include "../decoder.h"

namespace headroom::detail {

void read_stablelm(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "StableLm";
  family.max_position_embeddings = 4096;
  family.norm = {NormKind::layer_norm, true};
  family.norm_eps = 1e-5;
  family.rope.partial_rotary_factor = 0.25;
  family.bias = BiasRule::none;
  read_decoder(config, spec, family);
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
}

}  // namespace headroom::detail
