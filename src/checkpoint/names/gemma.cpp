// Gemma 2 and 3; the first is named like Llama.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kSandwich[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.pre_feedforward_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

constexpr NameRule kQueryKeyNorm[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_norm.%"},
};

}  // namespace

NameTable gemma_names(const ModelSpec& /*spec*/) {
  return {{kSandwich, kQueryKeyNorm, llama_rules()},
          {"model.", "language_model.model.", "model.language_model."},
          {{"lm_head.weight", ExtraKind::tied_copy},
           {"language_model.lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
