// Granite with routed experts.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.block_sparse_moe.router.layer.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.block_sparse_moe.input_linear.%",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.block_sparse_moe.input_linear.%",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.block_sparse_moe.output_linear.%",
     stacked_experts()},
};

}  // namespace

NameTable granitemoe_names(const ModelSpec& /*spec*/) {
  return {{kExperts, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
