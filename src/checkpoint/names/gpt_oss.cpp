// gpt-oss, whose experts store [in, out] with gate and up in turn.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGptOss[] = {
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.sinks"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(transposed(part(0, Stacking::per_index)))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(transposed(part(1, Stacking::per_index)))},
    {"decoder.layers.mlp.experts.gate.bias", "layers.{}.mlp.experts.gate_up_proj_bias",
     stacked_experts(part(0, Stacking::per_index))},
    {"decoder.layers.mlp.experts.up.bias", "layers.{}.mlp.experts.gate_up_proj_bias",
     stacked_experts(part(1, Stacking::per_index))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts(transposed())},
    {"decoder.layers.mlp.experts.down.bias", "layers.{}.mlp.experts.down_proj_bias",
     stacked_experts()},
};

}  // namespace

NameTable gpt_oss_names(const ModelSpec& /*spec*/) {
  return {{kGptOss, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
