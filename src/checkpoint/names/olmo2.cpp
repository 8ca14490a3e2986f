// OLMo 2, whose norms stand behind each part.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kOlmo2[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

constexpr NameRule kQueryKeyNorm[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_norm.%"},
};

}  // namespace

NameTable olmo2_names(const ModelSpec& /*spec*/) {
  return {{kOlmo2, kQueryKeyNorm, llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
