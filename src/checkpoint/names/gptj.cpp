// GPT-J.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGptj[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "h.{}.attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "h.{}.attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "h.{}.attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.fc_in.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.fc_out.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable gptj_names(const ModelSpec& /*spec*/) {
  return {{kGptj},
          {"transformer."},
          {{"attn.bias", ExtraKind::causal_mask},
           {"attn.masked_bias", ExtraKind::causal_mask},
           {"attention.bias", ExtraKind::causal_mask},
           {"attention.masked_bias", ExtraKind::causal_mask},
           {"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
