// Llama: pre-norm decoder with RMSNorm, rotary positions, SwiGLU and grouped-query attention
// (arXiv 2302.13971, 2307.09288, 2407.21783).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_llama(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
  config.ignore({"max_sequence_length", "rope_interleaved", "is_llama_config"});
}

}  // namespace

std::vector<Family> llama_families() {
  return {{.model_types = {"llama"},
           .classes = llama_classes("Llama"),
           .reader = read_llama,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "llama",
                                                                 .common = gguf_rms_norm_keys(),
                                                                 .flags = gguf_llama_biases(),
                                                                 .finish = finish_rope_scaling}})}};
}

}  // namespace headroom::detail
