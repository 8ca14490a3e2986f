// Mistral: Llama without biases, and with a window in every layer (arXiv 2310.06825).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_mistral(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWindowWhenAbsent = 4096;
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.window = read_window(config, kWindowWhenAbsent);
  config.ignore({"attention_bias", "mlp_bias"});  // the class has none, whatever a config says
}

}  // namespace

std::vector<Family> mistral_families() {
  return {{.model_types = {"mistral"},
           .classes = llama_classes("Mistral"),
           .reader = read_mistral,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::interleaved_heads, {})}};
}

}  // namespace headroom::detail
