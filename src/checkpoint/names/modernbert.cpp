// ModernBERT.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kModernbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.tok_embeddings.%"},
    {"embeddings.norm.%", "embeddings.norm.%"},
    {"encoder.layers.attention_norm.%", "layers.{}.attn_norm.%"},
    {"encoder.layers.attention.query.%", "layers.{}.attn.Wqkv.%", part(0)},
    {"encoder.layers.attention.key.%", "layers.{}.attn.Wqkv.%", part(1)},
    {"encoder.layers.attention.value.%", "layers.{}.attn.Wqkv.%", part(2)},
    {"encoder.layers.attention.output.%", "layers.{}.attn.Wo.%"},
    {"encoder.layers.mlp_norm.%", "layers.{}.mlp_norm.%"},
    {"encoder.layers.mlp.gate.%", "layers.{}.mlp.Wi.%", part(0)},
    {"encoder.layers.mlp.up.%", "layers.{}.mlp.Wi.%", part(1)},
    {"encoder.layers.mlp.down.%", "layers.{}.mlp.Wo.%"},
    {"encoder.final_norm.%", "final_norm.%"},
    {"head.transform.dense.%", "head.dense.%"},
    {"head.transform.norm.%", "head.norm.%"},
    {"head.language_model.%", "decoder.%"},
};

}  // namespace

NameTable modernbert_names(const ModelSpec& /*spec*/) {
  return {{kModernbert}, {"model."}, {{"decoder.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
