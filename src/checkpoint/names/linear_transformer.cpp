// The linear transformer of fast-transformers.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kLinearTransformer[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"embeddings.position_embeddings.%", "embed_positions.%"},
    {"layers.attention.query.%", "encoder.layers.{}.attention.query_projection.%"},
    {"layers.attention.key.%", "encoder.layers.{}.attention.key_projection.%"},
    {"layers.attention.value.%", "encoder.layers.{}.attention.value_projection.%"},
    {"layers.attention.output.%", "encoder.layers.{}.attention.out_projection.%"},
    {"layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"layers.mlp.up.%", "encoder.layers.{}.linear1.%"},
    {"layers.mlp.down.%", "encoder.layers.{}.linear2.%"},
    {"layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"final_norm.%", "encoder.norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

}  // namespace

NameTable linear_transformer_names(const ModelSpec& /*spec*/) {
  return {{kLinearTransformer}, {}, {}};
}

}  // namespace headroom::checkpoint
