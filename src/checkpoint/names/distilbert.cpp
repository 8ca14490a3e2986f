// DistilBERT.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kDistilbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "transformer.layer.{}.attention.q_lin.%"},
    {"encoder.layers.attention.key.%", "transformer.layer.{}.attention.k_lin.%"},
    {"encoder.layers.attention.value.%", "transformer.layer.{}.attention.v_lin.%"},
    {"encoder.layers.attention.output.%", "transformer.layer.{}.attention.out_lin.%"},
    {"encoder.layers.attention_norm.%", "transformer.layer.{}.sa_layer_norm.%"},
    {"encoder.layers.mlp.up.%", "transformer.layer.{}.ffn.lin1.%"},
    {"encoder.layers.mlp.down.%", "transformer.layer.{}.ffn.lin2.%"},
    {"encoder.layers.mlp_norm.%", "transformer.layer.{}.output_layer_norm.%"},
    {"head.transform.dense.%", "vocab_transform.%"},
    {"head.transform.norm.%", "vocab_layer_norm.%"},
    {"head.language_model.%", "vocab_projector.%"},
    {"head.classifier.dense.%", "pre_classifier.%"},
    {"head.classifier.%", "classifier.%"},
};

}  // namespace

NameTable distilbert_names(const ModelSpec& /*spec*/) {
  return {{kDistilbert},
          {"distilbert."},
          {{"vocab_projector.weight", ExtraKind::tied_copy},
           {"vocab_", ExtraKind::unused_head, NamePart::beginning}}};
}

}  // namespace headroom::checkpoint
