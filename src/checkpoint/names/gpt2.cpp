// GPT-2, whose Conv1D stores [in, out].
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGpt2[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%", transposed(part(0))},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", transposed(part(1))},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%", transposed(part(2))},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%", transposed()},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%", transposed()},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%", transposed()},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
};

}  // namespace

NameTable gpt2_names(const ModelSpec& /*spec*/) {
  return {{kGpt2},
          {"transformer."},
          {{"attn.bias", ExtraKind::causal_mask}, {"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
