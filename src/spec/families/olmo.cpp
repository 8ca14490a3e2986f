// OLMo and OLMo 2: norms without weights and clamped projections; then norms behind each part and
// of all queries and keys together (arXiv 2402.00838, 2501.00656).
#include "../decoder.h"

namespace headroom::detail {

void read_olmo(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Olmo";
  family.norm = {NormKind::layer_norm, false, 1e-5, NormWeight::none};
  family.norm_eps = 1e-5;
  read_decoder(config, spec, family);
  spec.decoder->self_attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
}

void read_olmo2(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Olmo2";
  family.norm_eps = 1e-5;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::output;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::all_heads};
}

}  // namespace headroom::detail
