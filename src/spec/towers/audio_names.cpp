// Stored names of audio towers and their projectors.
#include "tower_names.h"

namespace headroom::detail {
namespace {

// Whisper's encoder as the audio tower of another model.
constexpr NameRule kWhisperTower[] = {
    {"audio_tower.embeddings.conv1.%", "audio_tower.conv1.%"},
    {"audio_tower.embeddings.conv2.%", "audio_tower.conv2.%"},
    {"audio_tower.embeddings.position_embeddings.%", "audio_tower.embed_positions.%"},
    {"audio_tower.encoder.layers.attention.query.%", "audio_tower.layers.{}.self_attn.q_proj.%"},
    {"audio_tower.encoder.layers.attention.key.%", "audio_tower.layers.{}.self_attn.k_proj.%"},
    {"audio_tower.encoder.layers.attention.value.%", "audio_tower.layers.{}.self_attn.v_proj.%"},
    {"audio_tower.encoder.layers.attention.output.%", "audio_tower.layers.{}.self_attn.out_proj.%"},
    {"audio_tower.encoder.layers.attention_norm.%", "audio_tower.layers.{}.self_attn_layer_norm.%"},
    {"audio_tower.encoder.layers.mlp.up.%", "audio_tower.layers.{}.fc1.%"},
    {"audio_tower.encoder.layers.mlp.down.%", "audio_tower.layers.{}.fc2.%"},
    {"audio_tower.encoder.layers.mlp_norm.%", "audio_tower.layers.{}.final_layer_norm.%"},
};

constexpr NameRule kQwen2Audio[] = {
    {"audio_projector.norm.%", "audio_tower.layer_norm.%"},
    {"audio_projector.linear.%", "multi_modal_projector.linear.%"},
};

constexpr NameRule kVoxtral[] = {
    {"audio_tower.encoder.final_norm.%", "audio_tower.layer_norm.%"},
    {"audio_projector.up.%", "multi_modal_projector.linear_1.%"},
    {"audio_projector.down.%", "multi_modal_projector.linear_2.%"},
};

// Qwen2.5-Omni stores the queries, keys and values of its image tower apart.
constexpr NameRule kOmni[] = {
    {"audio_projector.norm.%", "audio_tower.ln_post.%"},
    {"audio_projector.linear.%", "audio_tower.proj.%"},
    {"audio_tower.first_and_last_token", "audio_tower.audio_bos_eos_token.weight"},
    {"vision_tower.encoder.layers.attention.query.%", "visual.blocks.{}.attn.q.%"},
    {"vision_tower.encoder.layers.attention.key.%", "visual.blocks.{}.attn.k.%"},
    {"vision_tower.encoder.layers.attention.value.%", "visual.blocks.{}.attn.v.%"},
};

constexpr NameRule kOmni3[] = {
    {"audio_tower.embeddings.conv1.%", "audio_tower.conv2d1.%"},
    {"audio_tower.embeddings.conv2.%", "audio_tower.conv2d2.%"},
    {"audio_tower.embeddings.conv3.%", "audio_tower.conv2d3.%"},
    {"audio_tower.embeddings.input.weight", "audio_tower.conv_out.weight"},
    {"audio_tower.encoder.final_norm.%", "audio_tower.ln_post.%"},
    {"audio_projector.up.%", "audio_tower.proj1.%"},
    {"audio_projector.down.%", "audio_tower.proj2.%"},
    {"deepstack.norm.%", "visual.merger_list.{}.ln_q.%"},
    {"deepstack.up.%", "visual.merger_list.{}.mlp.0.%"},
    {"deepstack.down.%", "visual.merger_list.{}.mlp.2.%"},
};

constexpr NameRule kAudioFlamingo3[] = {
    {"audio_projector.norm.%", "audio_tower.layer_norm.%"},
    {"audio_projector.up.%", "multi_modal_projector.linear_1.%"},
    {"audio_projector.down.%", "multi_modal_projector.linear_2.%"},
};

constexpr NameRule kQwen3Asr[] = {
    {"audio_tower.embeddings.conv1.%", "audio_tower.conv2d1.%"},
    {"audio_tower.embeddings.conv2.%", "audio_tower.conv2d2.%"},
    {"audio_tower.embeddings.conv3.%", "audio_tower.conv2d3.%"},
    {"audio_tower.embeddings.input.weight", "audio_tower.conv_out.weight"},
    {"audio_tower.encoder.final_norm.%", "audio_tower.ln_post.%"},
    {"audio_projector.up.%", "multi_modal_projector.linear_1.%"},
    {"audio_projector.down.%", "multi_modal_projector.linear_2.%"},
};

constexpr NameRule kGlmAsr[] = {
    {"audio_tower.embeddings.conv1.%", "audio_tower.conv1.%"},
    {"audio_tower.embeddings.conv2.%", "audio_tower.conv2.%"},
    {"audio_tower.encoder.layers.attention.query.%", "audio_tower.layers.{}.self_attn.q_proj.%"},
    {"audio_tower.encoder.layers.attention.key.%", "audio_tower.layers.{}.self_attn.k_proj.%"},
    {"audio_tower.encoder.layers.attention.value.%", "audio_tower.layers.{}.self_attn.v_proj.%"},
    {"audio_tower.encoder.layers.attention.output.%", "audio_tower.layers.{}.self_attn.o_proj.%"},
    {"audio_tower.encoder.layers.attention_norm.%", "audio_tower.layers.{}.input_layernorm.%"},
    {"audio_tower.encoder.layers.mlp.up.%", "audio_tower.layers.{}.mlp.fc1.%"},
    {"audio_tower.encoder.layers.mlp.down.%", "audio_tower.layers.{}.mlp.fc2.%"},
    {"audio_tower.encoder.layers.mlp_norm.%", "audio_tower.layers.{}.post_attention_layernorm.%"},
    {"audio_tower.encoder.final_norm.%", "audio_tower.norm.%"},
    {"audio_projector.up.%", "multi_modal_projector.linear_1.%"},
    {"audio_projector.down.%", "multi_modal_projector.linear_2.%"},
};

/// Names of a thinker, by itself or inside the whole model.
NameTable thinker_names(std::span<const NameRule> own) {
  return {{kWhisperTower, own, qwen_tower_rules()},
          {"thinker.", "thinker.model."},
          {{"talker.", ExtraKind::speech_output, NamePart::beginning},
           {"token2wav.", ExtraKind::speech_output, NamePart::beginning},
           {"code2wav.", ExtraKind::speech_output, NamePart::beginning}}};
}

}  // namespace

NameTable wrapped_qwen2_audio_names() { return {{kWhisperTower, kQwen2Audio}, {"model."}, {}}; }

NameTable wrapped_voxtral_names() { return {{kWhisperTower, kVoxtral}, {"model."}, {}}; }

NameTable wrapped_audioflamingo3_names() {
  return {{kWhisperTower, kAudioFlamingo3}, {"model."}, {}};
}

NameTable wrapped_qwen3_asr_names() {
  return {{kWhisperTower, kQwen3Asr}, {"model.", "thinker.", "thinker.model."}, {}};
}

NameTable wrapped_glm_asr_names() { return {{kGlmAsr}, {"model."}, {}}; }

NameTable wrapped_qwen2_5_omni_names() { return thinker_names(kOmni); }
NameTable wrapped_qwen3_omni_names() { return thinker_names(kOmni3); }

}  // namespace headroom::detail
