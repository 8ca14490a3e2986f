// Baichuan: Llama with fused projections; ALiBi in place of RoPE in the 13B models (arXiv
// 2309.10305).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// The vendor's code has one class name for both: RoPE with 4096 hidden dimensions (7B), ALiBi
/// otherwise (as vLLM decides, model_executor/models/baichuan.py).
constexpr std::int64_t kRotaryHiddenSize = 4096;
/// Of Baichuan 2, whose head normalises its rows (as vLLM tells both apart).
constexpr std::int64_t kVocabularyOfSecond = 125696;

void read_baichuan(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  if (spec.head.language_model && spec.embedding.vocab_size == kVocabularyOfSecond) {
    spec.head.language_model->unit_rows = true;
  }
  if (spec.hidden_size == kRotaryHiddenSize) return;
  spec.position.kind = PositionKind::none;
  spec.decoder->self_attention.alibi.kind = AlibiKind::power_below;
}

constexpr NameRule kBaichuan[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.W_pack.%", part(0)},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.W_pack.%", part(1)},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.W_pack.%", part(2)},
};

}  // namespace

std::vector<Family> baichuan_families() {
  return {
      {.model_types = {"baichuan"},
       .classes = either_of(llama_classes("Baichuan"), llama_classes("BaiChuan")),
       .reader = read_baichuan,
       .names = llama_names({kBaichuan}),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "baichuan",
                                                             .common = gguf_rms_norm_keys(),
                                                             .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
