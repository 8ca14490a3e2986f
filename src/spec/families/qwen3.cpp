// Qwen3: Llama with a norm of every query and key head (arXiv 2505.09388).
#include "../decoder.h"

namespace headroom::detail {

void read_qwen3(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Qwen3";
  family.max_position_embeddings = 32768;
  family.head_dim = 128;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  read_qwen_windows(config, stack);
}

}  // namespace headroom::detail
