// Llama, and what else is named like it.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kLlama[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.o_proj.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.down_proj.%"},
    {"decoder.final_norm.%", "norm.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "qa_outputs.%"},
    {"head.classifier.%", "classifier.%"},
};

constexpr NameRule kQueryKeyNorm[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_norm.%"},
};

}  // namespace

std::span<const NameRule> query_key_norm_rules() { return kQueryKeyNorm; }
std::span<const NameRule> llama_rules() { return kLlama; }

NameTable llama_names(const ModelSpec& /*spec*/) {
  return {{kLlama}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
