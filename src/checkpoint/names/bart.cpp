// BART, Marian, Pegasus and Whisper.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kStacks[] = {
    {"encoder.embeddings.position_embeddings.%", "encoder.embed_positions.%"},
    {"encoder.embeddings.norm.%", "encoder.layernorm_embedding.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.self_attn_layer_norm.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.final_layer_norm.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.fc1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.fc2.%"},
    {"encoder.final_norm.%", "encoder.layer_norm.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.self_attn.q_proj.%"},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.self_attn.k_proj.%"},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.self_attn.v_proj.%"},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.embeddings.position_embeddings.%", "decoder.embed_positions.%"},
    {"decoder.embeddings.norm.%", "decoder.layernorm_embedding.%"},
    {"decoder.layers.attention_norm.%", "decoder.layers.{}.self_attn_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.final_layer_norm.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.fc1.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.fc2.%"},
    {"decoder.final_norm.%", "decoder.layer_norm.%"},
    {"decoder.layers.attention.query.%", "decoder.layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.encoder_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "decoder.layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.encoder_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "decoder.layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.encoder_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "decoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.encoder_attn.out_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.encoder_attn_layer_norm.%"},
};

constexpr NameRule kBart[] = {
    {"word_embeddings.%", "shared.%"},
    {"word_embeddings.%", "encoder.embed_tokens.%"},
    {"head.language_model.weight", "lm_head.weight"},
    {"head.language_model.bias", "final_logits_bias"},
};

constexpr NameRule kWhisper[] = {
    {"word_embeddings.%", "decoder.embed_tokens.%"},
    {"encoder.embeddings.conv1.%", "encoder.conv1.%"},
    {"encoder.embeddings.conv2.%", "encoder.conv2.%"},
    {"head.language_model.%", "proj_out.%"},
};

}  // namespace

NameTable bart_names(const ModelSpec& /*spec*/) {
  return {{kBart, kStacks},
          {"model."},
          {{"encoder.embed_tokens.weight", ExtraKind::tied_copy},
           {"decoder.embed_tokens.weight", ExtraKind::tied_copy},
           {"shared.weight", ExtraKind::tied_copy},
           {"lm_head.weight", ExtraKind::tied_copy}}};
}

NameTable whisper_names(const ModelSpec& /*spec*/) {
  return {{kWhisper, kStacks}, {"model."}, {{"proj_out.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
