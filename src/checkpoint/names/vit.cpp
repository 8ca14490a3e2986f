// Vision Transformer.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kVit[] = {
    {"embeddings.patch_embeddings.%", "embeddings.patch_embeddings.projection.%"},
    {"embeddings.class_token", "embeddings.cls_token"},
    {"embeddings.position_embeddings.weight", "embeddings.position_embeddings"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.layernorm_before.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.attention.query.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.attention.key.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.attention.value.%"},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.output.dense.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.layernorm_after.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.intermediate.dense.%"},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.output.dense.%"},
    {"encoder.final_norm.%", "layernorm.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.classifier.%", "classifier.%"},
};

}  // namespace

NameTable vit_names(const ModelSpec& /*spec*/) { return {{kVit}, {"vit."}, {}}; }

}  // namespace headroom::checkpoint
