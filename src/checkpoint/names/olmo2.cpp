// OLMo 2, whose norms stand behind each part.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kOlmo2[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

}  // namespace

NameTable olmo2_names(const ModelSpec& /*spec*/) {
  return {{kOlmo2, query_key_norm_rules(), llama_rules()},
          {"model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
