// GLM-4, its gate and up projections stored together.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGlm[] = {
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_self_attn_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_mlp_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_up_proj.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.gate_up_proj.%", part(1)},
};

}  // namespace

NameTable glm_names(const ModelSpec& /*spec*/) {
  return {{kGlm, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
