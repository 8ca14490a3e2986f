#include "tower_names.h"

#include <array>

namespace headroom::detail {
namespace {

// CLIP, SigLIP and Idefics3's encoder; "pre_layrnorm" is CLIP's own spelling.
constexpr NameRule kClip[] = {
    {"vision_tower.embeddings.class_token", "vision_model.embeddings.class_embedding"},
    {"vision_tower.embeddings.patch_embeddings.%", "vision_model.embeddings.patch_embedding.%"},
    {"vision_tower.embeddings.position_embeddings.%",
     "vision_model.embeddings.position_embedding.%"},
    {"vision_tower.embeddings.norm.%", "vision_model.pre_layrnorm.%"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_model.encoder.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_model.encoder.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_model.encoder.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_model.encoder.layers.{}.self_attn.out_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_model.encoder.layers.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_model.encoder.layers.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_model.encoder.layers.{}.layer_norm1.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_model.encoder.layers.{}.layer_norm2.%"},
    {"vision_tower.encoder.final_norm.%", "vision_model.post_layernorm.%"},
    {"vision_tower.head.probe", "vision_model.head.probe"},
    {"vision_tower.head.cross_attention.query.%", "vision_model.head.attention.in_proj_%", part(0)},
    {"vision_tower.head.cross_attention.key.%", "vision_model.head.attention.in_proj_%", part(1)},
    {"vision_tower.head.cross_attention.value.%", "vision_model.head.attention.in_proj_%", part(2)},
    {"vision_tower.head.cross_attention.output.%", "vision_model.head.attention.out_proj.%"},
    {"vision_tower.head.norm.%", "vision_model.head.layernorm.%"},
    {"vision_tower.head.mlp.up.%", "vision_model.head.mlp.fc1.%"},
    {"vision_tower.head.mlp.down.%", "vision_model.head.mlp.fc2.%"},
};

// The text encoder, both projections and the logits of CLIP and SigLIP.
constexpr NameRule kClipText[] = {
    {"embeddings.word_embeddings.%", "text_model.embeddings.token_embedding.%"},
    {"embeddings.position_embeddings.%", "text_model.embeddings.position_embedding.%"},
    {"encoder.layers.attention.query.%", "text_model.encoder.layers.{}.self_attn.q_proj.%"},
    {"encoder.layers.attention.key.%", "text_model.encoder.layers.{}.self_attn.k_proj.%"},
    {"encoder.layers.attention.value.%", "text_model.encoder.layers.{}.self_attn.v_proj.%"},
    {"encoder.layers.attention.output.%", "text_model.encoder.layers.{}.self_attn.out_proj.%"},
    {"encoder.layers.mlp.up.%", "text_model.encoder.layers.{}.mlp.fc1.%"},
    {"encoder.layers.mlp.down.%", "text_model.encoder.layers.{}.mlp.fc2.%"},
    {"encoder.layers.attention_norm.%", "text_model.encoder.layers.{}.layer_norm1.%"},
    {"encoder.layers.mlp_norm.%", "text_model.encoder.layers.{}.layer_norm2.%"},
    {"encoder.final_norm.%", "text_model.final_layer_norm.%"},
    {"head.text_projection.%", "text_projection.%"},
    {"head.text_projection.%", "text_model.head.%"},
    {"head.logit_scale", "logit_scale"},
    {"head.logit_bias", "logit_bias"},
    {"projector.linear.%", "visual_projection.%"},
};

// The weights as transformers 5 stores them, without a module around the tower.
constexpr auto kClipInTower = [] {
  std::array<NameRule, std::size(kClip)> rules = std::to_array(kClip);
  for (NameRule& rule : rules) rule.stored.remove_prefix(std::string_view("vision_model.").size());
  return rules;
}();

/// Rules without these beginnings of their names.
template <std::size_t count>
constexpr std::array<NameRule, count> without(std::array<NameRule, count> rules,
                                              std::string_view canonical, std::string_view stored) {
  for (NameRule& rule : rules) {
    if (rule.canonical.starts_with(canonical)) rule.canonical.remove_prefix(canonical.size());
    if (rule.stored.starts_with(stored)) rule.stored.remove_prefix(stored.size());
  }
  return rules;
}

// Either encoder as a model of its own.
constexpr auto kClipVisionAlone = without(std::to_array(kClip), "vision_tower.", "vision_model.");
constexpr NameRule kVisualProjection[] = {{"head.visual_projection.%", "visual_projection.%"}};
// The image encoder beneath a classifier, whose files keep the name of its module, vision_model.
constexpr auto kClassifyingEncoder = without(std::to_array(kClip), "vision_tower.", "");
constexpr NameRule kImageClassifier[] = {{"head.classifier.%", "classifier.%"}};
constexpr auto kClipTextAlone = without(std::to_array(kClipText), "", "text_model.");

constexpr NameRule kPixtral[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "vision_tower.patch_conv.%"},
    {"vision_tower.embeddings.norm.%", "vision_tower.ln_pre.%"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_tower.transformer.layers.{}.attention.q_proj.%"},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_tower.transformer.layers.{}.attention.k_proj.%"},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_tower.transformer.layers.{}.attention.v_proj.%"},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_tower.transformer.layers.{}.attention.o_proj.%"},
    {"vision_tower.encoder.layers.mlp.gate.%",
     "vision_tower.transformer.layers.{}.feed_forward.gate_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%",
     "vision_tower.transformer.layers.{}.feed_forward.up_proj.%"},
    {"vision_tower.encoder.layers.mlp.down.%",
     "vision_tower.transformer.layers.{}.feed_forward.down_proj.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_tower.transformer.layers.{}.attention_norm.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_tower.transformer.layers.{}.ffn_norm.%"},
};

// LightOnOCR calls the tower vision_encoder.
constexpr auto kPixtralAlone = without(std::to_array(kPixtral), "", "vision_tower.");

constexpr NameRule kInternvl[] = {
    {"vision_tower.embeddings.class_token", "vision_tower.embeddings.cls_token"},
    {"vision_tower.embeddings.patch_embeddings.%",
     "vision_tower.embeddings.patch_embeddings.projection.%"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_tower.embeddings.position_embeddings"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_tower.encoder.layer.{}.attention.q_proj.%"},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_tower.encoder.layer.{}.attention.k_proj.%"},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_tower.encoder.layer.{}.attention.v_proj.%"},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_tower.encoder.layer.{}.attention.projection_layer.%"},
    {"vision_tower.encoder.layers.attention.query_norm.%",
     "vision_tower.encoder.layer.{}.attention.q_norm.%"},
    {"vision_tower.encoder.layers.attention.key_norm.%",
     "vision_tower.encoder.layer.{}.attention.k_norm.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_tower.encoder.layer.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_tower.encoder.layer.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_tower.encoder.layer.{}.layernorm_before.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_tower.encoder.layer.{}.layernorm_after.%"},
    {"vision_tower.encoder.layers.attention_scale.weight",
     "vision_tower.encoder.layer.{}.lambda_1"},
    {"vision_tower.encoder.layers.mlp_scale.weight", "vision_tower.encoder.layer.{}.lambda_2"},
    {"vision_tower.encoder.final_norm.%", "vision_tower.layernorm.%"},
    {"projector.norm.%", "multi_modal_projector.layer_norm.%"},
};

// Qwen2-VL to Qwen3.5. Rules for one path are those of one generation after the other.
constexpr NameRule kQwen[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "visual.patch_embed.proj.%"},
    {"vision_tower.embeddings.position_embeddings.%", "visual.pos_embed.%"},
    {"vision_tower.encoder.layers.attention.query.%", "visual.blocks.{}.attn.qkv.%", part(0)},
    {"vision_tower.encoder.layers.attention.key.%", "visual.blocks.{}.attn.qkv.%", part(1)},
    {"vision_tower.encoder.layers.attention.value.%", "visual.blocks.{}.attn.qkv.%", part(2)},
    {"vision_tower.encoder.layers.attention.output.%", "visual.blocks.{}.attn.proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "visual.blocks.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "visual.blocks.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.mlp.gate.%", "visual.blocks.{}.mlp.gate_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "visual.blocks.{}.mlp.up_proj.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "visual.blocks.{}.mlp.down_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "visual.blocks.{}.mlp.linear_fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "visual.blocks.{}.mlp.linear_fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%", "visual.blocks.{}.norm1.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "visual.blocks.{}.norm2.%"},
    {"projector.norm.%", "visual.merger.ln_q.%"},
    {"projector.up.%", "visual.merger.mlp.0.%"},
    {"projector.down.%", "visual.merger.mlp.2.%"},
    {"projector.norm.%", "visual.merger.norm.%"},
    {"projector.up.%", "visual.merger.linear_fc1.%"},
    {"projector.down.%", "visual.merger.linear_fc2.%"},
    {"deepstack.norm.%", "visual.deepstack_merger_list.{}.norm.%"},
    {"deepstack.up.%", "visual.deepstack_merger_list.{}.linear_fc1.%"},
    {"deepstack.down.%", "visual.deepstack_merger_list.{}.linear_fc2.%"},
};

// HyperCLOVA X calls the tower vision_model, and transformers its own projector projector.
constexpr auto kQwenAlone = without(std::to_array(kQwen), "", "visual.");
constexpr NameRule kHyperclovax[] = {
    {"projector.linear.%", "vision_projector.%"},
    {"projector.linear.%", "projector.%"},
};

constexpr NameRule kGlm4v[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "visual.patch_embed.proj.%"},
    {"vision_tower.embeddings.position_embeddings.%", "visual.embeddings.position_embedding.%"},
    {"vision_tower.embeddings.norm.%", "visual.post_conv_layernorm.%"},
    {"vision_tower.encoder.layers.attention.query.%", "visual.blocks.{}.attn.qkv.%", part(0)},
    {"vision_tower.encoder.layers.attention.key.%", "visual.blocks.{}.attn.qkv.%", part(1)},
    {"vision_tower.encoder.layers.attention.value.%", "visual.blocks.{}.attn.qkv.%", part(2)},
    {"vision_tower.encoder.layers.attention.output.%", "visual.blocks.{}.attn.proj.%"},
    {"vision_tower.encoder.layers.mlp.gate.%", "visual.blocks.{}.mlp.gate_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "visual.blocks.{}.mlp.up_proj.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "visual.blocks.{}.mlp.down_proj.%"},
    {"vision_tower.encoder.layers.attention_norm.%", "visual.blocks.{}.norm1.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "visual.blocks.{}.norm2.%"},
    {"vision_tower.encoder.final_norm.%", "visual.post_layernorm.%"},
    {"projector.downsample.%", "visual.downsample.%"},
    {"projector.input.%", "visual.merger.proj.%"},
    {"projector.norm.%", "visual.merger.post_projection_norm.%"},
    {"projector.gate.%", "visual.merger.gate_proj.%"},
    {"projector.up.%", "visual.merger.up_proj.%"},
    {"projector.down.%", "visual.merger.down_proj.%"},
};

// Every linear layer of the tower stands in a module of its own, which may clip it.
constexpr NameRule kGemma4[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "vision_tower.patch_embedder.input_proj.%"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_tower.patch_embedder.position_embedding_table"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_tower.encoder.layers.{}.self_attn.q_proj.linear.%"},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_tower.encoder.layers.{}.self_attn.k_proj.linear.%"},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_tower.encoder.layers.{}.self_attn.v_proj.linear.%"},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_tower.encoder.layers.{}.self_attn.o_proj.linear.%"},
    {"vision_tower.encoder.layers.attention.query_norm.%",
     "vision_tower.encoder.layers.{}.self_attn.q_norm.%"},
    {"vision_tower.encoder.layers.attention.key_norm.%",
     "vision_tower.encoder.layers.{}.self_attn.k_norm.%"},
    {"vision_tower.encoder.layers.mlp.gate.%",
     "vision_tower.encoder.layers.{}.mlp.gate_proj.linear.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_tower.encoder.layers.{}.mlp.up_proj.linear.%"},
    {"vision_tower.encoder.layers.mlp.down.%",
     "vision_tower.encoder.layers.{}.mlp.down_proj.linear.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_tower.encoder.layers.{}.input_layernorm.%"},
    {"vision_tower.encoder.layers.attention_output_norm.%",
     "vision_tower.encoder.layers.{}.post_attention_layernorm.%"},
    {"vision_tower.encoder.layers.mlp_norm.%",
     "vision_tower.encoder.layers.{}.pre_feedforward_layernorm.%"},
    {"vision_tower.encoder.layers.mlp_output_norm.%",
     "vision_tower.encoder.layers.{}.post_feedforward_layernorm.%"},
    {"projector.standardise.mean", "vision_tower.std_bias"},
    {"projector.standardise.factor", "vision_tower.std_scale"},
    {"projector.linear.%", "embed_vision.embedding_projection.%"},
};

constexpr NameRule kTwoLayers[] = {
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

// LLaVA-NeXT and LLaVA-OneVision.
constexpr NameRule kTiled[] = {
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
    {"projector.end_of_row", "image_newline"},
};

// As published; transformers saves the weights with these names, too.
constexpr NameRule kKimi[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "vision_tower.patch_embed.proj.%"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_tower.patch_embed.pos_emb.weight"},
    {"vision_tower.encoder.layers.attention.query.%", "vision_tower.encoder.blocks.{}.wqkv.%",
     part(0)},
    {"vision_tower.encoder.layers.attention.key.%", "vision_tower.encoder.blocks.{}.wqkv.%",
     part(1)},
    {"vision_tower.encoder.layers.attention.value.%", "vision_tower.encoder.blocks.{}.wqkv.%",
     part(2)},
    {"vision_tower.encoder.layers.attention.output.%", "vision_tower.encoder.blocks.{}.wo.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_tower.encoder.blocks.{}.mlp.fc0.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_tower.encoder.blocks.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.attention_norm.%", "vision_tower.encoder.blocks.{}.norm0.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_tower.encoder.blocks.{}.norm1.%"},
    {"vision_tower.encoder.final_norm.%", "vision_tower.encoder.final_layernorm.%"},
    {"projector.norm.%", "mm_projector.pre_norm.%"},
    {"projector.up.%", "mm_projector.proj.0.%"},
    {"projector.down.%", "mm_projector.proj.2.%"},
};

// Before those of K2.5, whose norm stands in front of its projector.
constexpr NameRule kKimiK3Projector[] = {
    {"projector.norm.%", "mm_projector.post_norm.%"},
};

constexpr NameRule kMuseGlimmer[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "vision_tower.patch_embedder.patch_embedding.%"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_tower.patch_embedder.position_embedding_table.weight"},
    {"vision_tower.embeddings.norm.%", "vision_tower.ln_pre.%"},
    {"vision_tower.encoder.layers.attention.query.%", "vision_tower.layers.{}.attn.q_proj.%"},
    {"vision_tower.encoder.layers.attention.key.%", "vision_tower.layers.{}.attn.k_proj.%"},
    {"vision_tower.encoder.layers.attention.value.%", "vision_tower.layers.{}.attn.v_proj.%"},
    {"vision_tower.encoder.layers.attention.output.%", "vision_tower.layers.{}.attn.proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_tower.layers.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_tower.layers.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%", "vision_tower.layers.{}.norm1.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_tower.layers.{}.norm2.%"},
    {"vision_tower.encoder.final_norm.%", "vision_tower.ln_post.%"},
    {"projector.up.%", "vision_adapter.fc1.%"},
    {"projector.down.%", "vision_adapter.fc2.%"},
    {"projector.linear.%", "vision_projection.%"},
};

constexpr NameRule kGemma3[] = {
    {"projector.norm.%", "multi_modal_projector.mm_soft_emb_norm.%"},
    {"projector.input.weight", "multi_modal_projector.mm_input_projection_weight", transposed()},
};

constexpr NameRule kIdefics3[] = {
    {"projector.linear.weight", "connector.modality_projection.proj.weight"},
};

constexpr NameRule kLfm2Vl[] = {
    {"projector.norm.%", "multi_modal_projector.layer_norm.%"},
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

// The first half of the rows is the gate's operand, the second the gate.
constexpr NameRule kCohere[] = {
    {"projector.norm.%", "multi_modal_projector.layernorm.%"},
    {"projector.up.%", "multi_modal_projector.linear_1.%", part(0)},
    {"projector.gate.%", "multi_modal_projector.linear_1.%", part(1)},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

// As OpenGVLab publishes it.
constexpr NameRule kInternvlChat[] = {
    {"vision_tower.embeddings.class_token", "vision_model.embeddings.class_embedding"},
    {"vision_tower.embeddings.patch_embeddings.%", "vision_model.embeddings.patch_embedding.%"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_model.embeddings.position_embedding"},
    {"vision_tower.encoder.layers.attention.query.%", "vision_model.encoder.layers.{}.attn.qkv.%",
     part(0)},
    {"vision_tower.encoder.layers.attention.key.%", "vision_model.encoder.layers.{}.attn.qkv.%",
     part(1)},
    {"vision_tower.encoder.layers.attention.value.%", "vision_model.encoder.layers.{}.attn.qkv.%",
     part(2)},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_model.encoder.layers.{}.attn.proj.%"},
    {"vision_tower.encoder.layers.attention.query_norm.%",
     "vision_model.encoder.layers.{}.attn.q_norm.%"},
    {"vision_tower.encoder.layers.attention.key_norm.%",
     "vision_model.encoder.layers.{}.attn.k_norm.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_model.encoder.layers.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_model.encoder.layers.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%", "vision_model.encoder.layers.{}.norm1.%"},
    {"vision_tower.encoder.layers.mlp_norm.%", "vision_model.encoder.layers.{}.norm2.%"},
    {"vision_tower.encoder.layers.attention_scale.weight", "vision_model.encoder.layers.{}.ls1"},
    {"vision_tower.encoder.layers.mlp_scale.weight", "vision_model.encoder.layers.{}.ls2"},
    {"projector.norm.%", "mlp1.0.%"},
    {"projector.up.%", "mlp1.1.%"},
    {"projector.down.%", "mlp1.3.%"},
};

constexpr NameRule kMistral3[] = {
    {"projector.norm.%", "multi_modal_projector.norm.%"},
    {"projector.merger.%", "multi_modal_projector.patch_merger.merging_layer.%"},
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

constexpr NameRule kLightOnOcr[] = {
    {"projector.norm.%", "vision_projection.norm.%"},
    {"projector.merger.%", "vision_projection.patch_merger.merging_layer.%"},
    {"projector.up.%", "vision_projection.linear_1.%"},
    {"projector.down.%", "vision_projection.linear_2.%"},
};

constexpr NameRule kPaligemma[] = {
    {"projector.linear.%", "multi_modal_projector.linear.%"},
};

}  // namespace

NameTable wrapped_clip_names(std::span<const NameRule> projector) {
  return {{kClip, kClipInTower, projector},
          {"model.", "vision_tower.", "model.vision_tower.", "model.text_model."},
          {}};
}

NameTable clip_names() {
  // Rules for the text encoder fit the ends of the image encoder's paths too, so they come last.
  return {{kClip, kClipText, kClassifyingEncoder, kImageClassifier},
          {},
          {{"embeddings.position_ids", ExtraKind::position_ids}}};
}

NameTable clip_vision_names() {
  return {{kClipVisionAlone, kVisualProjection}, {"vision_model."}, {}};
}

NameTable clip_text_names() {
  return {
      {kClipTextAlone}, {"text_model."}, {{"embeddings.position_ids", ExtraKind::position_ids}}};
}

NameTable wrapped_pixtral_names(std::span<const NameRule> projector) {
  // LLaVA takes either encoder.
  return {{kPixtral, kClip, kClipInTower, projector},
          {"model.", "vision_tower.", "model.vision_tower."},
          {}};
}

NameTable wrapped_lighton_ocr_names() {
  return {{kPixtralAlone, kLightOnOcr}, {"model.", "vision_encoder.", "model.vision_encoder."}, {}};
}

NameTable wrapped_internvl_names() { return {{kInternvl, kTwoLayers}, {"model."}, {}}; }

NameTable wrapped_internvl_chat_names() { return {{kInternvlChat}, {}, {}}; }

NameTable wrapped_qwen_names() { return {{kQwen}, {"model."}, {}}; }

NameTable wrapped_hyperclovax_names() {
  return {{kQwenAlone, kHyperclovax}, {"model.", "vision_model.", "model.vision_model."}, {}};
}

NameTable wrapped_glm4v_names() { return {{kGlm4v}, {"model."}, {}}; }

NameTable wrapped_kimi_names() { return {{kKimi}, {"model."}, {}}; }

NameTable wrapped_kimi_k3_names() { return {{kKimiK3Projector, kKimi}, {"model."}, {}}; }

NameTable wrapped_muse_glimmer_names() { return {{kMuseGlimmer}, {"model."}, {}}; }

NameTable wrapped_gemma4_names() { return {{kGemma4, gemma4_audio_rules()}, {"model."}, {}}; }

std::span<const NameRule> two_layer_projector_rules() { return kTwoLayers; }
std::span<const NameRule> tiled_projector_rules() { return kTiled; }
std::span<const NameRule> qwen_tower_rules() { return kQwen; }
std::span<const NameRule> clip_tower_rules() { return kClip; }
std::span<const NameRule> unwrapped_clip_tower_rules() { return kClipInTower; }
std::span<const NameRule> gemma3_projector_rules() { return kGemma3; }
std::span<const NameRule> idefics3_projector_rules() { return kIdefics3; }
std::span<const NameRule> lfm2_vl_projector_rules() { return kLfm2Vl; }
std::span<const NameRule> cohere_projector_rules() { return kCohere; }
std::span<const NameRule> mistral3_projector_rules() { return kMistral3; }
std::span<const NameRule> paligemma_projector_rules() { return kPaligemma; }

}  // namespace headroom::detail
