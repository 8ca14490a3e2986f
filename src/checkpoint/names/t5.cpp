// T5; from version 1.1 on with a gated feed-forward network.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kT5[] = {
    {"encoder.embeddings.word_embeddings.%", "shared.%"},
    {"embeddings.word_embeddings.%", "shared.%"},
    {"encoder.relative_attention_bias.%",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.%"},
    {"encoder.layers.attention_norm.%", "encoder.block.{}.layer.0.layer_norm.%"},
    {"encoder.layers.attention.query.%", "encoder.block.{}.layer.0.SelfAttention.q.%"},
    {"encoder.layers.attention.key.%", "encoder.block.{}.layer.0.SelfAttention.k.%"},
    {"encoder.layers.attention.value.%", "encoder.block.{}.layer.0.SelfAttention.v.%"},
    {"encoder.layers.attention.output.%", "encoder.block.{}.layer.0.SelfAttention.o.%"},
    {"encoder.layers.mlp_norm.%", "encoder.block.{}.layer.1.layer_norm.%"},
    {"encoder.layers.mlp.down.%", "encoder.block.{}.layer.1.DenseReluDense.wo.%"},
    {"encoder.final_norm.%", "encoder.final_layer_norm.%"},
    {"decoder.relative_attention_bias.%",
     "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.%"},
    {"decoder.layers.attention_norm.%", "decoder.block.{}.layer.0.layer_norm.%"},
    {"decoder.layers.attention.query.%", "decoder.block.{}.layer.0.SelfAttention.q.%"},
    {"decoder.layers.attention.key.%", "decoder.block.{}.layer.0.SelfAttention.k.%"},
    {"decoder.layers.attention.value.%", "decoder.block.{}.layer.0.SelfAttention.v.%"},
    {"decoder.layers.attention.output.%", "decoder.block.{}.layer.0.SelfAttention.o.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.block.{}.layer.1.layer_norm.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.block.{}.layer.1.EncDecAttention.q.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.block.{}.layer.1.EncDecAttention.k.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.block.{}.layer.1.EncDecAttention.v.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.block.{}.layer.1.EncDecAttention.o.%"},
    {"decoder.layers.mlp_norm.%", "decoder.block.{}.layer.2.layer_norm.%"},
    {"decoder.layers.mlp.down.%", "decoder.block.{}.layer.2.DenseReluDense.wo.%"},
    {"decoder.final_norm.%", "decoder.final_layer_norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

constexpr NameRule kT5Plain[] = {
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi.%"},
};

constexpr NameRule kT5Gated[] = {
    {"encoder.layers.mlp.gate.%", "encoder.block.{}.layer.1.DenseReluDense.wi_0.%"},
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi_1.%"},
    {"decoder.layers.mlp.gate.%", "decoder.block.{}.layer.2.DenseReluDense.wi_0.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi_1.%"},
};

}  // namespace

NameTable t5_names(const ModelSpec& spec) {
  const bool gated = spec.main_stack().ffn.kind == FfnKind::gated;
  const std::span<const NameRule> mlp = gated ? std::span<const NameRule>(kT5Gated) : kT5Plain;
  return {
      {mlp, kT5},
      {},
      {{"embed_tokens.weight", ExtraKind::tied_copy}, {"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
