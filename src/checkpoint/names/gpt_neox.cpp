// GPT-NeoX, its projections stored head by head.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kGptNeox[] = {
    {"embeddings.word_embeddings.%", "embed_in.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attention.query_key_value.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "layers.{}.attention.query_key_value.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "layers.{}.attention.query_key_value.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "layers.{}.attention.dense.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.dense_h_to_4h.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "final_layer_norm.%"},
    {"head.language_model.%", "embed_out.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable gpt_neox_names(const ModelSpec& /*spec*/) {
  return {{kGptNeox},
          {"gpt_neox."},
          {{"attn.bias", ExtraKind::causal_mask},
           {"attn.masked_bias", ExtraKind::causal_mask},
           {"attention.bias", ExtraKind::causal_mask},
           {"attention.masked_bias", ExtraKind::causal_mask},
           {"embed_out.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
