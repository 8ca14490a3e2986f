// Phi-3, its projections stored together.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kPhi3[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.qkv_proj.%", part(0)},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.qkv_proj.%", part(1)},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.qkv_proj.%", part(2)},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_up_proj.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.gate_up_proj.%", part(1)},
};

}  // namespace

NameTable phi3_names(const ModelSpec& /*spec*/) {
  return {{kPhi3, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
