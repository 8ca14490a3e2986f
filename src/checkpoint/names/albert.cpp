// ALBERT, one set of weights for every group of layers.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kAlbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"embeddings.projection.%", "encoder.embedding_hidden_mapping_in.%"},
    {"encoder.layers.attention.query.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.query.%"},
    {"encoder.layers.attention.key.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.key.%"},
    {"encoder.layers.attention.value.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.value.%"},
    {"encoder.layers.attention.output.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.dense.%"},
    {"encoder.layers.attention_norm.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm.%"},
    {"encoder.layers.mlp.up.%", "encoder.albert_layer_groups.{}.albert_layers.0.ffn.%"},
    {"encoder.layers.mlp.down.%", "encoder.albert_layer_groups.{}.albert_layers.0.ffn_output.%"},
    {"encoder.layers.mlp_norm.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm.%"},
    {"head.pooler.dense.%", "pooler.%"},
    {"head.transform.dense.%", "predictions.dense.%"},
    {"head.transform.norm.%", "predictions.LayerNorm.%"},
    {"head.language_model.weight", "predictions.decoder.weight"},
    {"head.language_model.bias", "predictions.bias"},
    {"head.classifier.%", "sop_classifier.classifier.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable albert_names(const ModelSpec& /*spec*/) {
  return {{kAlbert},
          {"albert."},
          {{"predictions.decoder.weight", ExtraKind::tied_copy},
           {"predictions.decoder.bias", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
