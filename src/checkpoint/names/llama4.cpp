// Llama 4, whose experts store [in, out].
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kLlama4[] = {
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.down_proj.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.feed_forward.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(transposed(part(0)))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(transposed(part(1)))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.feed_forward.experts.down_proj",
     stacked_experts(transposed())},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.feed_forward.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.feed_forward.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.feed_forward.shared_expert.down_proj.%"},
};

}  // namespace

NameTable llama4_names(const ModelSpec& /*spec*/) {
  return {{kLlama4, llama_rules()},
          {"model.", "language_model.model.", "language_model.", "model.language_model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
