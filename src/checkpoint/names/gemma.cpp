// Gemma 2 and 3; the first is named like Llama.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kSandwich[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.pre_feedforward_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

// The SigLIP tower of Gemma 3, and what projects its patches into the text model.
constexpr NameRule kGemmaVision[] = {
    {"vision_tower.patch_embeddings.%", "vision_tower.vision_model.embeddings.patch_embedding.%"},
    {"vision_tower.position_embeddings.%",
     "vision_tower.vision_model.embeddings.position_embedding.%"},
    {"vision_tower.layers.attention.query.%",
     "vision_tower.vision_model.encoder.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.layers.attention.key.%",
     "vision_tower.vision_model.encoder.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.layers.attention.value.%",
     "vision_tower.vision_model.encoder.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.layers.attention.output.%",
     "vision_tower.vision_model.encoder.layers.{}.self_attn.out_proj.%"},
    {"vision_tower.layers.mlp.up.%", "vision_tower.vision_model.encoder.layers.{}.mlp.fc1.%"},
    {"vision_tower.layers.mlp.down.%", "vision_tower.vision_model.encoder.layers.{}.mlp.fc2.%"},
    {"vision_tower.layers.attention_norm.%",
     "vision_tower.vision_model.encoder.layers.{}.layer_norm1.%"},
    {"vision_tower.layers.mlp_norm.%", "vision_tower.vision_model.encoder.layers.{}.layer_norm2.%"},
    {"vision_tower.final_norm.%", "vision_tower.vision_model.post_layernorm.%"},
    {"vision_tower.head.probe", "vision_tower.vision_model.head.probe"},
    {"vision_tower.head.attention.qkv.weight",
     "vision_tower.vision_model.head.attention.in_proj_weight"},
    {"vision_tower.head.attention.qkv.bias",
     "vision_tower.vision_model.head.attention.in_proj_bias"},
    {"vision_tower.head.attention.output.%", "vision_tower.vision_model.head.attention.out_proj.%"},
    {"vision_tower.head.norm.%", "vision_tower.vision_model.head.layernorm.%"},
    {"vision_tower.head.mlp.up.%", "vision_tower.vision_model.head.mlp.fc1.%"},
    {"vision_tower.head.mlp.down.%", "vision_tower.vision_model.head.mlp.fc2.%"},
    {"projector.norm.%", "multi_modal_projector.mm_soft_emb_norm.%"},
    {"projector.weight", "multi_modal_projector.mm_input_projection_weight"},
};

}  // namespace

NameTable gemma_names(const ModelSpec& /*spec*/) {
  return {{kGemmaVision, kSandwich, query_key_norm_rules(), llama_rules()},
          {"model.", "language_model.model.", "model.language_model."},
          {{"lm_head.weight", ExtraKind::tied_copy},
           {"language_model.lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
