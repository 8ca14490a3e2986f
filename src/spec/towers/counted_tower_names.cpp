// Stored names of models with a tower that is counted, alone or beside one that runs.
#include "tower_names.h"

namespace headroom::detail {
namespace {

// Video-LLaVA's tower of frames, as transformers 5 stores it, and as it is published.
constexpr NameRule kFrames[] = {
    {"vision_tower.frames.class_token", "video_tower.embeddings.class_embedding"},
    {"vision_tower.frames.patch_embeddings.%", "video_tower.embeddings.patch_embedding.%"},
    {"vision_tower.frames.position_embeddings.%", "video_tower.embeddings.position_embedding.%"},
    {"vision_tower.frames.first_norm.%", "video_tower.pre_layrnorm.%"},
    {"vision_tower.frames.final_norm.%", "video_tower.post_layernorm.%"},
    {"vision_tower.layers.attention.query.%", "video_tower.encoder.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.layers.attention.key.%", "video_tower.encoder.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.layers.attention.value.%", "video_tower.encoder.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.layers.attention.output.%",
     "video_tower.encoder.layers.{}.self_attn.out_proj.%"},
    {"vision_tower.layers.attention_norm.%", "video_tower.encoder.layers.{}.layer_norm1.%"},
    {"vision_tower.layers.mlp.up.%", "video_tower.encoder.layers.{}.mlp.fc1.%"},
    {"vision_tower.layers.mlp.down.%", "video_tower.encoder.layers.{}.mlp.fc2.%"},
    {"vision_tower.layers.mlp_norm.%", "video_tower.encoder.layers.{}.layer_norm2.%"},
};

constexpr NameRule kPublishedFrames[] = {
    {"vision_tower.frames.class_token", "video_tower.vision_model.embeddings.class_embedding"},
    {"vision_tower.frames.patch_embeddings.%",
     "video_tower.vision_model.embeddings.patch_embedding.%"},
    {"vision_tower.frames.position_embeddings.%",
     "video_tower.vision_model.embeddings.position_embedding.%"},
    {"vision_tower.frames.first_norm.%", "video_tower.vision_model.pre_layrnorm.%"},
    {"vision_tower.frames.final_norm.%", "video_tower.vision_model.post_layernorm.%"},
    {"vision_tower.layers.attention.query.%",
     "video_tower.vision_model.encoder.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.layers.attention.key.%",
     "video_tower.vision_model.encoder.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.layers.attention.value.%",
     "video_tower.vision_model.encoder.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.layers.attention.output.%",
     "video_tower.vision_model.encoder.layers.{}.self_attn.out_proj.%"},
    {"vision_tower.layers.attention_norm.%",
     "video_tower.vision_model.encoder.layers.{}.layer_norm1.%"},
    {"vision_tower.layers.mlp.up.%", "video_tower.vision_model.encoder.layers.{}.mlp.fc1.%"},
    {"vision_tower.layers.mlp.down.%", "video_tower.vision_model.encoder.layers.{}.mlp.fc2.%"},
    {"vision_tower.layers.mlp_norm.%", "video_tower.vision_model.encoder.layers.{}.layer_norm2.%"},
};

constexpr NameRule kPhi4Images[] = {
    {"projector.up.%", "img_projection_up.%"},
    {"projector.down.%", "img_projection_down.%"},
    {"projector.end_of_row", "sub_img_feature_extensor"},
    {"projector.end_of_tiles", "global_img_feature_extensor"},
};

constexpr NameRule kPhi4Sound[] = {
    {"audio_tower.convolutions.{i}.%", "encoder.embed.conv.{i}.%"},
    {"audio_tower.input.%", "encoder.embed.out.%"},
    {"audio_tower.relative_positions", "encoder.relative_attention_bias_layer.bias_values.weight"},
    {"audio_tower.layers.first_mlp.norm.%", "encoder.encoders.{}.feed_forward_in.layer_norm.%"},
    {"audio_tower.layers.first_mlp.gate_up.%",
     "encoder.encoders.{}.feed_forward_in.gate_up_proj.%"},
    {"audio_tower.layers.first_mlp.down.%", "encoder.encoders.{}.feed_forward_in.down_proj.%"},
    {"audio_tower.layers.attention_norm.%", "encoder.encoders.{}.layer_norm_att.%"},
    {"audio_tower.layers.attention.query.%", "encoder.encoders.{}.self_attn.q_proj.%"},
    {"audio_tower.layers.attention.key.%", "encoder.encoders.{}.self_attn.k_proj.%"},
    {"audio_tower.layers.attention.value.%", "encoder.encoders.{}.self_attn.v_proj.%"},
    {"audio_tower.layers.attention.output.%", "encoder.encoders.{}.self_attn.o_proj.%"},
    {"audio_tower.layers.convolution.norm.%", "encoder.encoders.{}.conv.layer_norm.%"},
    {"audio_tower.layers.convolution.in.%", "encoder.encoders.{}.conv.glu.ext_pw_conv_1d.%"},
    {"audio_tower.layers.convolution.gate_bias", "encoder.encoders.{}.conv.glu.b1"},
    {"audio_tower.layers.convolution.up_bias", "encoder.encoders.{}.conv.glu.b2"},
    {"audio_tower.layers.convolution.depthwise.%",
     "encoder.encoders.{}.conv.dw_sep_conv_1d.dw_conv.%"},
    {"audio_tower.layers.convolution.pointwise.%",
     "encoder.encoders.{}.conv.dw_sep_conv_1d.pw_conv.%"},
    {"audio_tower.layers.convolution.out.%", "encoder.encoders.{}.conv.ext_pw_conv_1d.%"},
    {"audio_tower.layers.second_mlp.norm.%", "encoder.encoders.{}.feed_forward_out.layer_norm.%"},
    {"audio_tower.layers.second_mlp.gate_up.%",
     "encoder.encoders.{}.feed_forward_out.gate_up_proj.%"},
    {"audio_tower.layers.second_mlp.down.%", "encoder.encoders.{}.feed_forward_out.down_proj.%"},
    {"audio_tower.layers.norm.%", "encoder.encoders.{}.layer_norm.%"},
    {"projector.speech.up.%", "up_proj_for_speech.%"},
    {"projector.speech.down.%", "down_proj_for_speech.%"},
    {"projector.speech_beside_images.up.%", "up_proj_for_vision_speech.%"},
    {"projector.speech_beside_images.down.%", "down_proj_for_vision_speech.%"},
};

constexpr NameRule kMllama[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "vision_model.patch_embedding.%"},
    {"vision_tower.embeddings.class_token", "vision_model.class_embedding"},
    {"vision_tower.embeddings.position_embeddings.weight",
     "vision_model.gated_positional_embedding.embedding"},
    {"vision_tower.embeddings.position_embeddings.gate",
     "vision_model.gated_positional_embedding.gate"},
    {"vision_tower.embeddings.tile_position_embeddings.%",
     "vision_model.gated_positional_embedding.tile_embedding.%"},
    {"vision_tower.embeddings.first_tile_embeddings.%",
     "vision_model.pre_tile_positional_embedding.embedding.%"},
    {"vision_tower.embeddings.first_tile_embeddings.gate",
     "vision_model.pre_tile_positional_embedding.gate"},
    {"vision_tower.tile_embeddings.last_tile_embeddings.%",
     "vision_model.post_tile_positional_embedding.embedding.%"},
    {"vision_tower.tile_embeddings.last_tile_embeddings.gate",
     "vision_model.post_tile_positional_embedding.gate"},
    {"vision_tower.embeddings.norm.%", "vision_model.layernorm_pre.%"},
    {"vision_tower.encoder.final_norm.%", "vision_model.layernorm_post.%"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_model.transformer.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_model.transformer.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_model.transformer.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_model.transformer.layers.{}.self_attn.o_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_model.transformer.layers.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_model.transformer.layers.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_model.transformer.layers.{}.input_layernorm.%"},
    {"vision_tower.encoder.layers.mlp_norm.%",
     "vision_model.transformer.layers.{}.post_attention_layernorm.%"},
    {"vision_tower.global_layers.attention.query.%",
     "vision_model.global_transformer.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.global_layers.attention.key.%",
     "vision_model.global_transformer.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.global_layers.attention.value.%",
     "vision_model.global_transformer.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.global_layers.attention.output.%",
     "vision_model.global_transformer.layers.{}.self_attn.o_proj.%"},
    {"vision_tower.global_layers.mlp.up.%", "vision_model.global_transformer.layers.{}.mlp.fc1.%"},
    {"vision_tower.global_layers.mlp.down.%",
     "vision_model.global_transformer.layers.{}.mlp.fc2.%"},
    {"vision_tower.global_layers.attention_norm.%",
     "vision_model.global_transformer.layers.{}.input_layernorm.%"},
    {"vision_tower.global_layers.mlp_norm.%",
     "vision_model.global_transformer.layers.{}.post_attention_layernorm.%"},
    {"vision_tower.global_layers.attention_gate",
     "vision_model.global_transformer.layers.{}.gate_attn"},
    {"vision_tower.global_layers.mlp_gate", "vision_model.global_transformer.layers.{}.gate_ffn"},
    {"projector.linear.%", "multi_modal_projector.%"},
};

}  // namespace

NameTable wrapped_mllama_names() { return {{kMllama}, {"model."}, {}}; }

NameTable wrapped_video_llava_names() {
  NameTable names = wrapped_clip_names(two_layer_projector_rules());
  names.rules.emplace_back(kFrames);
  names.rules.emplace_back(kPublishedFrames);
  names.optional_prefixes.insert(names.optional_prefixes.end(),
                                 {"image_tower.", "model.image_tower."});
  names.extras.push_back({"video_tower.", ExtraKind::vision_tower, NamePart::beginning});
  names.extras.push_back({"model.video_tower.", ExtraKind::vision_tower, NamePart::beginning});
  return names;
}

NameTable wrapped_phi4_names() {
  NameTable names = wrapped_clip_names(kPhi4Images);
  names.rules.emplace_back(kPhi4Sound);
  for (const std::string_view prefix : {"model.embed_tokens_extend.image_embed.",
                                        "model.embed_tokens_extend.image_embed.img_processor.",
                                        "model.embed_tokens_extend.audio_embed."}) {
    names.optional_prefixes.push_back(prefix);
  }
  // Statistics that normalise a spectrogram.
  names.extras.push_back({"encoder_embedding.global_mean", ExtraKind::layer_constant});
  names.extras.push_back({"encoder_embedding.global_invstd", ExtraKind::layer_constant});
  names.extras.push_back(
      {"model.embed_tokens_extend.audio_embed.", ExtraKind::vision_tower, NamePart::beginning});
  return names;
}

}  // namespace headroom::detail
