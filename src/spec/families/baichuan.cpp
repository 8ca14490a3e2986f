// Baichuan: Llama with fused projections; ALiBi in place of RoPE in the 13B models (arXiv
// 2309.10305).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// The vendor's code has one class name for both: RoPE with 4096 hidden dimensions (7B), ALiBi
/// otherwise (as vLLM decides, model_executor/models/baichuan.py).
constexpr std::int64_t kRotaryHiddenSize = 4096;

void read_baichuan(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  if (spec.hidden_size == kRotaryHiddenSize) return;
  spec.position.kind = PositionKind::none;
  spec.decoder->self_attention.alibi.kind = AlibiKind::power_below;
}

}  // namespace

std::vector<Family> baichuan_families() {
  return {{.model_types = {"baichuan"},
           .classes = either_of(llama_classes("Baichuan"), llama_classes("BaiChuan")),
           .reader = read_baichuan,
           .names = None("Baichuan 2 normalises the rows of its head, which is not run"),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
