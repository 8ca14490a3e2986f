// DeepSeek V2 and V3, and GLM-4.5, whose experts are named like theirs.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kLatent[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_b_proj.%"},
    {"decoder.layers.attention.query_a.%", "layers.{}.self_attn.q_a_proj.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.self_attn.q_a_layernorm.%"},
    {"decoder.layers.attention.key_value_a.%", "layers.{}.self_attn.kv_a_proj_with_mqa.%"},
    {"decoder.layers.attention.key_value_a_norm.%", "layers.{}.self_attn.kv_a_layernorm.%"},
    {"decoder.layers.attention.key_value.%", "layers.{}.self_attn.kv_b_proj.%"},
};

// The indexer of sparse attention (GLM-5).
constexpr NameRule kIndexer[] = {
    {"decoder.layers.attention.indexer.query.%", "layers.{}.self_attn.indexer.wq_b.%"},
    {"decoder.layers.attention.indexer.key.%", "layers.{}.self_attn.indexer.wk.%"},
    {"decoder.layers.attention.indexer.key_norm.%", "layers.{}.self_attn.indexer.k_norm.%"},
    {"decoder.layers.attention.indexer.weights.%", "layers.{}.self_attn.indexer.weights_proj.%"},
};

constexpr NameRule kSharedExperts[] = {
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.gate.e_score_correction_bias"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_experts.down_proj.%"},
};

}  // namespace

NameTable deepseek_names(const ModelSpec& /*spec*/) {
  return {{kIndexer, kLatent, kSharedExperts, routed_expert_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

NameTable glm4_moe_names(const ModelSpec& /*spec*/) {
  return {{query_key_norm_rules(), kSharedExperts, routed_expert_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
