// Mistral: Llama without biases, and with a window in every layer (arXiv 2310.06825).
#include "../decoder.h"

namespace headroom::detail {

void read_mistral(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWindowWhenAbsent = 4096;
  DecoderFamily family;
  family.prefix = "Mistral";
  family.num_key_value_heads = 8;
  family.max_position_embeddings = 131072;
  family.bias = BiasRule::none;
  read_decoder(config, spec, family);
  spec.decoder->self_attention.window = read_window(config, kWindowWhenAbsent);
  config.ignore({"attention_bias", "mlp_bias"});  // the class has none, whatever a config says
}

}  // namespace headroom::detail
