// Qwen2 and Qwen2.5, and Qwen1.5 before them: Llama with biases of queries, keys and values
// (arXiv 2407.10671).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_qwen2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.bias = BiasRule::query_key_value;
  read_decoder(config, spec, defaults);
  read_qwen_windows(config, *spec.decoder);
  config.ignore({"attention_bias", "qkv_bias", "rope_interleaved"});  // fixed by the class
}

}  // namespace

std::vector<Family> qwen2_families() {
  return {{.model_types = {"qwen2"},
           .classes = llama_classes("Qwen2"),
           .reader = read_qwen2,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "qwen2", .common = gguf_rms_norm_keys()}})}};
}

}  // namespace headroom::detail
