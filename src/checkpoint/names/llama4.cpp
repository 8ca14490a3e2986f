// Llama 4, whose experts store [in, out].
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kLlama4[] = {
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.down_proj.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.feed_forward.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(transposed(part(0)))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(transposed(part(1)))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.feed_forward.experts.down_proj",
     stacked_experts(transposed())},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.feed_forward.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.feed_forward.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.feed_forward.shared_expert.down_proj.%"},
};

// The vision tower, and what projects its patches into the text model.
constexpr NameRule kLlama4Vision[] = {
    {"vision_tower.patch_embeddings.%", "vision_model.patch_embedding.linear.%"},
    {"vision_tower.class_token", "vision_model.class_embedding"},
    {"vision_tower.position_embeddings.weight", "vision_model.positional_embedding_vlm"},
    {"vision_tower.first_norm.%", "vision_model.layernorm_pre.%"},
    {"vision_tower.layers.attention.query.%", "vision_model.model.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.layers.attention.key.%", "vision_model.model.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.layers.attention.value.%", "vision_model.model.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.layers.attention.output.%", "vision_model.model.layers.{}.self_attn.o_proj.%"},
    {"vision_tower.layers.mlp.up.%", "vision_model.model.layers.{}.mlp.fc1.%"},
    {"vision_tower.layers.mlp.down.%", "vision_model.model.layers.{}.mlp.fc2.%"},
    {"vision_tower.layers.attention_norm.%", "vision_model.model.layers.{}.input_layernorm.%"},
    {"vision_tower.layers.mlp_norm.%", "vision_model.model.layers.{}.post_attention_layernorm.%"},
    {"vision_tower.final_norm.%", "vision_model.layernorm_post.%"},
    {"projector.up.weight", "vision_model.vision_adapter.mlp.fc1.weight"},
    {"projector.down.weight", "vision_model.vision_adapter.mlp.fc2.weight"},
    {"projector.weight", "multi_modal_projector.linear_1.weight"},
};

}  // namespace

NameTable llama4_names(const ModelSpec& /*spec*/) {
  return {{kLlama4Vision, kLlama4, llama_rules()},
          {"model.", "language_model.model.", "language_model.", "model.language_model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
