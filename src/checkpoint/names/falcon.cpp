// Falcon, its projections stored by groups of heads; with one key-value head that is one group.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kFalcon[] = {
    {"embeddings.word_embeddings.%", "word_embeddings.%"},
    {"decoder.layers.attention_norm.%", "h.{}.input_layernorm.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_attn.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_mlp.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.post_attention_layernorm.%"},
    {"decoder.layers.attention.output.%", "h.{}.self_attention.dense.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.dense_h_to_4h.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
    {"decoder.layers.attention.query.%", "h.{}.self_attention.query_key_value.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "h.{}.self_attention.query_key_value.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "h.{}.self_attention.query_key_value.%",
     part(2, Stacking::per_key_value_head)},
};

}  // namespace

NameTable falcon_names(const ModelSpec& /*spec*/) {
  return {{kFalcon}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
