// Llama: pre-norm decoder with RMSNorm, rotary positions, SwiGLU and grouped-query attention
// (arXiv 2302.13971, 2307.09288, 2407.21783).
#include "../decoder.h"

namespace headroom::detail {

void read_llama(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Llama";
  read_decoder(config, spec, family);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
  config.ignore({"max_sequence_length", "rope_interleaved", "is_llama_config"});
}

}  // namespace headroom::detail
