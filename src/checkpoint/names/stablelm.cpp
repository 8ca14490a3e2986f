// StableLM, with a norm of its own for every head of queries and keys.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kHeadNorms[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.norms.{e}.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.norms.{e}.%"},
};

}  // namespace

NameTable stablelm_names(const ModelSpec& /*spec*/) {
  return {{kHeadNorms, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
