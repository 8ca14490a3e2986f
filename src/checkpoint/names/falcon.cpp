// Falcon, its projections stored by groups of heads; with one key-value head that is one group.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

/// Of layers with parallel branches and a norm for each; the rest is as in BLOOM.
constexpr NameRule kFalcon[] = {
    {"decoder.layers.attention_norm.%", "h.{}.ln_attn.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_mlp.%"},
};

}  // namespace

NameTable falcon_names(const ModelSpec& /*spec*/) {
  return {{kFalcon, bloom_rules()}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
