// A router and its experts, each stored by itself or all in one tensor.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kRoutedExperts[] = {
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
};

}  // namespace

std::span<const NameRule> routed_expert_rules() { return kRoutedExperts; }

}  // namespace headroom::checkpoint
