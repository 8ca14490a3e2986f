// Phi-1 to Phi-2.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kPhi[] = {
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.dense.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.fc2.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

}  // namespace

NameTable phi_names(const ModelSpec& /*spec*/) {
  return {{kPhi, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
