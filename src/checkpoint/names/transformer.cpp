// torch.nn.Transformer, which stacks query, key and value.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kTransformer[] = {
    {"encoder.embeddings.word_embeddings.%", "embedding.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.self_attn.in_proj_%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.self_attn.in_proj_%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.self_attn.in_proj_%", part(2)},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.self_attn.out_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.linear1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.linear2.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"encoder.final_norm.%", "encoder.norm.%"},
    {"decoder.layers.attention.query.%", "decoder.layers.{}.self_attn.in_proj_%", part(0)},
    {"decoder.layers.attention.key.%", "decoder.layers.{}.self_attn.in_proj_%", part(1)},
    {"decoder.layers.attention.value.%", "decoder.layers.{}.self_attn.in_proj_%", part(2)},
    {"decoder.layers.attention.output.%", "decoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.attention_norm.%", "decoder.layers.{}.norm1.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.multihead_attn.in_proj_%",
     part(0)},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.multihead_attn.in_proj_%", part(1)},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.multihead_attn.in_proj_%",
     part(2)},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.multihead_attn.out_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.norm2.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.linear1.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.linear2.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.norm3.%"},
    {"decoder.final_norm.%", "decoder.norm.%"},
};

}  // namespace

NameTable transformer_names(const ModelSpec& /*spec*/) { return {{kTransformer}, {}, {}}; }

}  // namespace headroom::checkpoint
