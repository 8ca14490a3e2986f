// Qwen3: Llama with a norm of every query and key head (arXiv 2505.09388).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_qwen3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.head_dim = 128;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  read_qwen_windows(config, stack);
}

}  // namespace

std::vector<Family> qwen3_families() {
  return {
      {.model_types = {"qwen3"},
       .classes = llama_classes("Qwen3"),
       .reader = read_qwen3,
       .names = llama_names({query_key_norm_rules()}),
       .gguf = GgufForm(GgufConversion::none, {{.name = "qwen3",
                                                .common = gguf_rms_norm_keys(),
                                                .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                                                .head_dim = GgufHeadDim::always}})}};
}

}  // namespace headroom::detail
