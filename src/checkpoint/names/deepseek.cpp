// DeepSeek V2 and V3.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kDeepseek[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_b_proj.%"},
    {"decoder.layers.attention.query_a.%", "layers.{}.self_attn.q_a_proj.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.self_attn.q_a_layernorm.%"},
    {"decoder.layers.attention.key_value_a.%", "layers.{}.self_attn.kv_a_proj_with_mqa.%"},
    {"decoder.layers.attention.key_value_a_norm.%", "layers.{}.self_attn.kv_a_layernorm.%"},
    {"decoder.layers.attention.key_value.%", "layers.{}.self_attn.kv_b_proj.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.gate.e_score_correction_bias"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_experts.down_proj.%"},
};

}  // namespace

NameTable deepseek_names(const ModelSpec& /*spec*/) {
  return {{kDeepseek, routed_expert_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
