// Stored names of models whose trained queries attend to an image.
#include "tower_names.h"

namespace headroom::detail {
namespace {

constexpr NameRule kBlip2[] = {
    {"vision_tower.embeddings.class_token", "vision_model.embeddings.class_embedding"},
    {"vision_tower.embeddings.patch_embeddings.%", "vision_model.embeddings.patch_embedding.%"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_model.embeddings.position_embedding"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_model.encoder.layers.{}.self_attn.qkv.%", part(0)},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_model.encoder.layers.{}.self_attn.qkv.%", part(1)},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_model.encoder.layers.{}.self_attn.qkv.%", part(2)},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_model.encoder.layers.{}.self_attn.projection.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_model.encoder.layers.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_model.encoder.layers.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_model.encoder.layers.{}.layer_norm1.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_model.encoder.layers.{}.layer_norm2.%"},
    {"vision_tower.encoder.final_norm.%", "vision_model.post_layernorm.%"},
    {"projector.queries", "query_tokens"},
    {"projector.query_norm.%", "qformer.layernorm.%"},
    {"projector.attention.{i}.query.%", "qformer.encoder.layer.{i}.attention.attention.query.%"},
    {"projector.attention.{i}.key.%", "qformer.encoder.layer.{i}.attention.attention.key.%"},
    {"projector.attention.{i}.value.%", "qformer.encoder.layer.{i}.attention.attention.value.%"},
    {"projector.attention.{i}.output.%", "qformer.encoder.layer.{i}.attention.output.dense.%"},
    {"projector.attention.{i}.norm.%", "qformer.encoder.layer.{i}.attention.output.LayerNorm.%"},
    {"projector.cross_attention.{i}.query.%",
     "qformer.encoder.layer.{i}.crossattention.attention.query.%"},
    {"projector.cross_attention.{i}.key.%",
     "qformer.encoder.layer.{i}.crossattention.attention.key.%"},
    {"projector.cross_attention.{i}.value.%",
     "qformer.encoder.layer.{i}.crossattention.attention.value.%"},
    {"projector.cross_attention.{i}.output.%",
     "qformer.encoder.layer.{i}.crossattention.output.dense.%"},
    {"projector.cross_attention.{i}.norm.%",
     "qformer.encoder.layer.{i}.crossattention.output.LayerNorm.%"},
    {"projector.mlp.{i}.up.%", "qformer.encoder.layer.{i}.intermediate_query.dense.%"},
    {"projector.mlp.{i}.output.%", "qformer.encoder.layer.{i}.output_query.dense.%"},
    {"projector.mlp.{i}.norm.%", "qformer.encoder.layer.{i}.output_query.LayerNorm.%"},
    {"projector.linear.%", "language_projection.%"},
};

constexpr NameRule kAriaProjector[] = {
    {"projector.queries", "multi_modal_projector.query"},
    {"projector.query_norm.%", "multi_modal_projector.cross_attn.layer_norm.%"},
    {"projector.key_value_norm.%", "multi_modal_projector.cross_attn.layer_norm_kv.%"},
    {"projector.outer_query.%", "multi_modal_projector.cross_attn.q_proj.%"},
    {"projector.query.%", "multi_modal_projector.cross_attn.multihead_attn.in_proj_%", part(0)},
    {"projector.outer_key.%", "multi_modal_projector.cross_attn.k_proj.%"},
    {"projector.key.%", "multi_modal_projector.cross_attn.multihead_attn.in_proj_%", part(1)},
    {"projector.outer_value.%", "multi_modal_projector.cross_attn.v_proj.%"},
    {"projector.value.%", "multi_modal_projector.cross_attn.multihead_attn.in_proj_%", part(2)},
    {"projector.output.%", "multi_modal_projector.cross_attn.multihead_attn.out_proj.%"},
    {"projector.linear.%", "multi_modal_projector.cross_attn.linear.%"},
    {"projector.norm.%", "multi_modal_projector.layer_norm.%"},
    {"projector.up.%", "multi_modal_projector.feed_forward.linear_in.%"},
    {"projector.down.%", "multi_modal_projector.feed_forward.linear_out.%"},
};

}  // namespace

NameTable wrapped_blip2_names() {
  // The text model keeps the module of OPT's own files, decoder.
  return {
      {kBlip2}, {"model.", "language_model.model.decoder.", "model.language_model.decoder."}, {}};
}

NameTable wrapped_aria_names() { return wrapped_clip_names(kAriaProjector); }

}  // namespace headroom::detail
