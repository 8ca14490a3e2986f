// GPT-Neo.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGptNeo[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.attention.q_proj.%"},
    {"decoder.layers.attention.key.%", "h.{}.attn.attention.k_proj.%"},
    {"decoder.layers.attention.value.%", "h.{}.attn.attention.v_proj.%"},
    {"decoder.layers.attention.output.%", "h.{}.attn.attention.out_proj.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable gpt_neo_names(const ModelSpec& /*spec*/) {
  return {{kGptNeo},
          {"transformer."},
          {{"attn.bias", ExtraKind::causal_mask},
           {"attn.masked_bias", ExtraKind::causal_mask},
           {"attention.bias", ExtraKind::causal_mask},
           {"attention.masked_bias", ExtraKind::causal_mask},
           {"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
