// Qwen 2 and 3, dense and routed.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kSharedExpert[] = {
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_expert.down_proj.%"},
    {"decoder.layers.mlp.shared_expert_gate.%", "layers.{}.mlp.shared_expert_gate.%"},
};

}  // namespace

NameTable qwen3_names(const ModelSpec& /*spec*/) {
  return {{query_key_norm_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

NameTable qwen_moe_names(const ModelSpec& /*spec*/) {
  return {{routed_expert_rules(), kSharedExpert, query_key_norm_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
