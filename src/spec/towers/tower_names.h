// Stored names of image towers and projectors.
#pragma once

#include <span>

#include "../stored/stored_names.h"

namespace headroom::detail {

/// Names of the towers of MiMo-V2.5 and their projectors.
[[nodiscard]] std::span<const NameRule> mimo_tower_rules();
/// Names of CLIP and SigLIP themselves: two encoders, their projections and the logits.
[[nodiscard]] NameTable clip_names();
/// Names of either encoder as a model of its own.
[[nodiscard]] NameTable clip_vision_names();
[[nodiscard]] NameTable clip_text_names();
/// Names of multimodal models with a tower of CLIP or SigLIP, or of Pixtral, and the projector
/// `projector`. The text model's names are its family's.
[[nodiscard]] NameTable wrapped_clip_names(std::span<const NameRule> projector);
[[nodiscard]] NameTable wrapped_pixtral_names(std::span<const NameRule> projector);
[[nodiscard]] NameTable wrapped_lighton_ocr_names();
[[nodiscard]] NameTable wrapped_internvl_names();
[[nodiscard]] NameTable wrapped_internvl_chat_names();
[[nodiscard]] NameTable wrapped_qwen_names();
[[nodiscard]] NameTable wrapped_hyperclovax_names();
[[nodiscard]] NameTable wrapped_glm4v_names();
[[nodiscard]] NameTable wrapped_kimi_names();
[[nodiscard]] NameTable wrapped_kimi_k3_names();
[[nodiscard]] NameTable wrapped_muse_glimmer_names();
[[nodiscard]] NameTable wrapped_gemma4_names();
[[nodiscard]] NameTable wrapped_gemma3n_names();
/// Gemma 4's audio tower.
[[nodiscard]] std::span<const NameRule> gemma4_audio_rules();
[[nodiscard]] NameTable wrapped_vipllava_names();
[[nodiscard]] NameTable wrapped_video_llama3_names();
[[nodiscard]] NameTable wrapped_paddleocr_names();
[[nodiscard]] NameTable wrapped_glm_ocr_names();
[[nodiscard]] NameTable wrapped_minimax_m3_names();
[[nodiscard]] NameTable wrapped_kimi_vl_names();
[[nodiscard]] NameTable wrapped_phi3_v_names();
[[nodiscard]] NameTable wrapped_video_llava_names();
[[nodiscard]] NameTable wrapped_phi4_names();
/// Phi-4 multimodal's towers and adapters as Microsoft publishes them, and its text model's layers.
[[nodiscard]] NameTable phi4mm_names();
[[nodiscard]] std::span<const NameRule> phi4mm_text_rules();
[[nodiscard]] NameTable wrapped_mllama_names();
[[nodiscard]] NameTable wrapped_blip2_names();
[[nodiscard]] NameTable wrapped_aria_names();
[[nodiscard]] NameTable wrapped_qwen2_audio_names();
[[nodiscard]] NameTable wrapped_voxtral_names();
[[nodiscard]] NameTable wrapped_audioflamingo3_names();
[[nodiscard]] NameTable wrapped_qwen3_asr_names();
[[nodiscard]] NameTable wrapped_glm_asr_names();
[[nodiscard]] NameTable wrapped_qwen2_5_omni_names();
[[nodiscard]] NameTable wrapped_qwen3_omni_names();
/// Two linear layers (LLaVA).
[[nodiscard]] std::span<const NameRule> two_layer_projector_rules();
/// Two linear layers and the vector at the end of a row (LLaVA-NeXT).
[[nodiscard]] std::span<const NameRule> tiled_projector_rules();
/// Qwen2-VL to Qwen3.5.
[[nodiscard]] std::span<const NameRule> qwen_tower_rules();
[[nodiscard]] std::span<const NameRule> clip_tower_rules();
/// Those of a tower without the module vision_model around it.
[[nodiscard]] std::span<const NameRule> unwrapped_clip_tower_rules();
[[nodiscard]] std::span<const NameRule> gemma3_projector_rules();
[[nodiscard]] std::span<const NameRule> idefics3_projector_rules();
[[nodiscard]] std::span<const NameRule> lfm2_vl_projector_rules();
/// Command A Vision and Aya Vision.
[[nodiscard]] std::span<const NameRule> cohere_projector_rules();
[[nodiscard]] std::span<const NameRule> mistral3_projector_rules();
[[nodiscard]] std::span<const NameRule> paligemma_projector_rules();

}  // namespace headroom::detail
