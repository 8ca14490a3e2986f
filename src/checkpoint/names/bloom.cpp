// BLOOM, its projections stored head by head.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kBloom[] = {
    {"embeddings.word_embeddings.%", "word_embeddings.%"},
    {"embeddings.norm.%", "word_embeddings_layernorm.%"},
    {"decoder.layers.attention_norm.%", "h.{}.input_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.post_attention_layernorm.%"},
    {"decoder.layers.attention.query.%", "h.{}.self_attention.query_key_value.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "h.{}.self_attention.query_key_value.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "h.{}.self_attention.query_key_value.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "h.{}.self_attention.dense.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.dense_h_to_4h.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::span<const NameRule> bloom_rules() { return kBloom; }

NameTable bloom_names(const ModelSpec& /*spec*/) {
  return {{kBloom}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
