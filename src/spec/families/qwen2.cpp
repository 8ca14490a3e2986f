// Qwen2 and Qwen2.5, and Qwen1.5 before them: Llama with biases of queries, keys and values
// (arXiv 2407.10671).
#include "../decoder.h"

namespace headroom::detail {

void read_qwen2(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Qwen2";
  family.max_position_embeddings = 32768;
  family.bias = BiasRule::query_key_value;
  read_decoder(config, spec, family);
  read_qwen_windows(config, *spec.decoder);
  config.ignore({"attention_bias", "qkv_bias", "rope_interleaved"});  // fixed by the class
}

}  // namespace headroom::detail
