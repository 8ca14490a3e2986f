// Mixtral, and those whose experts are named like its.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kMixtralExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.block_sparse_moe.gate.%"},
    {"decoder.layers.mlp.router.correction_bias",
     "layers.{}.block_sparse_moe.e_score_correction_bias"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.block_sparse_moe.experts.{e}.w1.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.block_sparse_moe.experts.{e}.w3.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.block_sparse_moe.experts.{e}.w2.%"},
    // Transformers 5 renames the block; its class for PhiMoE stores experts apart all the same.
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.e_score_correction_bias"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.mlp.experts.{e}.w1.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.mlp.experts.{e}.w3.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.mlp.experts.{e}.w2.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.gate.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts()},
};

}  // namespace

NameTable mixtral_names(const ModelSpec& /*spec*/) {
  return {{kMixtralExperts, query_key_norm_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
