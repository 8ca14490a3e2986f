// StarCoder and SantaCoder, which store [out, in], and projections by groups of heads; with one
// key-value head that is one group.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGptBigcode[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
};

}  // namespace

NameTable gpt_bigcode_names(const ModelSpec& /*spec*/) {
  return {{kGptBigcode},
          {"transformer."},
          {{"attn.bias", ExtraKind::causal_mask},
           {"attn.masked_bias", ExtraKind::causal_mask},
           {"attention.bias", ExtraKind::causal_mask},
           {"attention.masked_bias", ExtraKind::causal_mask},
           {"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
