// Qwen 2 and 3, dense and routed.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kQueryKeyNorm[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_norm.%"},
};

constexpr NameRule kExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.gate.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.mlp.experts.{e}.gate_proj.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.mlp.experts.{e}.up_proj.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.mlp.experts.{e}.down_proj.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts()},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_expert.down_proj.%"},
    {"decoder.layers.mlp.shared_expert_gate.%", "layers.{}.mlp.shared_expert_gate.%"},
};

}  // namespace

NameTable qwen3_names(const ModelSpec& /*spec*/) {
  return {{kQueryKeyNorm, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

NameTable qwen_moe_names(const ModelSpec& /*spec*/) {
  return {{kExperts, kQueryKeyNorm, llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
