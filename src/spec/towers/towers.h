// Vision and audio towers of multimodal models with their projectors. `read_…` fills in a tower
// that runs; of one that `count_…` reads, only the weights are counted. Every function reads
// `vision_config` (or `audio_config`) and the projector's keys of `config`, and requires
// `spec.hidden_size`, the width of the text model. Sizes that the config omits are the class's
// defaults (transformers 5.16). Shapes: the families' published modelling code in transformers.
#pragma once

#include "../common_keys.h"

namespace headroom::detail {

/// Gemma 3: SigLIP, an average over blocks of patches, a norm and a linear layer; the visual tokens
/// of an image see each other.
void read_gemma3_tower(ConfigReader& config, ModelSpec& spec);
/// LLaVA: the encoder that vision_config.model_type names, and an MLP of two layers.
void read_llava_tower(ConfigReader& config, ModelSpec& spec);
/// Mistral Small 3.1: Pixtral, a merger of patches, and an MLP of two layers.
void read_mistral3_tower(ConfigReader& config, ModelSpec& spec);
/// PaliGemma: SigLIP and a linear projector; the prompt's tokens see each other.
void read_paligemma_tower(ConfigReader& config, ModelSpec& spec);
/// Idefics3 and SmolVLM: SigLIP without a pooling head, pixel shuffle, a linear projector.
void read_idefics3_tower(ConfigReader& config, ModelSpec& spec);
/// InternVL (the layout of transformers): layer scale, pixel shuffle, an MLP.
void read_internvl_tower(ConfigReader& config, ModelSpec& spec);

/// LFM2-VL: SigLIP 2 on images of any shape, pixel shuffle, an MLP.
void read_lfm2_vl_tower(ConfigReader& config, ModelSpec& spec);
/// Command A Vision and Aya Vision: SigLIP, pixel shuffle, a gated network.
void read_cohere2_vision_tower(ConfigReader& config, ModelSpec& spec);
void read_aya_vision_tower(ConfigReader& config, ModelSpec& spec);
/// InternVL as OpenGVLab publishes it (modeling_internvl_chat.py).
void read_internvl_chat_tower(ConfigReader& config, ModelSpec& spec);

/// Gemma 4: 2-D positions, a norm of each head, pooled patches, a linear projector.
void read_gemma4_tower(ConfigReader& config, ModelSpec& spec);
/// Gemma 4's audio tower, a Conformer (arXiv 2005.08100), if the config has one.
void read_gemma4_audio(ConfigReader& config, ModelSpec& spec);
/// Gemma 3n: MobileNet V5, which is counted, and a Conformer for sound.
void read_gemma3n_towers(ConfigReader& config, ModelSpec& spec);
/// MiniMax M3: CLIP's layers with 3-D RoPE, an MLP before and after the merger of patches.
void read_minimax_m3_tower(ConfigReader& config, ModelSpec& spec);
/// Step-3: norms behind attention and network, and two convolutions that halve the image's sides.
void count_step3_tower(ConfigReader& config, ModelSpec& spec);
/// MiMo-V2.5: Qwen2.5-VL's tower with grouped heads and sinks, and Qwen2's layers on codes of
/// sound, where the config has them.
void count_mimo_towers(ConfigReader& config, ModelSpec& spec);
/// Step 3.7: layer scale, 2-D RoPE, and two convolutions that halve the image's sides.
void count_step3p7_tower(ConfigReader& config, ModelSpec& spec);
/// MiniCPM-V 4.6: SigLIP with attention in windows of patches, which it merges between two layers.
void count_minicpmv4_6_tower(ConfigReader& config, ModelSpec& spec);
/// HunyuanOCR: ViT, a convolution that merges patches, and vectors at the ends of rows and images.
void count_hunyuan_vl_tower(ConfigReader& config, ModelSpec& spec);
void count_hunyuan_v4_tower(ConfigReader& config, ModelSpec& spec);
void count_lfm3_vl_tower(ConfigReader& config, ModelSpec& spec);
/// Nemotron 3 Nano Omni: C-RADIO and, if the config has one, Parakeet, each with a norm and an MLP.
void count_nemotron_omni_towers(ConfigReader& config, ModelSpec& spec);
/// Llama 4: learned positions and 2-D RoPE, an adapter of merged patches, a linear projector.
void read_llama4_tower(ConfigReader& config, ModelSpec& spec);
/// Qwen2-VL: LayerNorm, a plain FFN of mlp_ratio · embed_dim, a merger of 2×2 patches.
void read_qwen2_vl_tower(ConfigReader& config, ModelSpec& spec);
/// Qwen2.5-VL: RMSNorm, SwiGLU.
void read_qwen2_5_vl_tower(ConfigReader& config, ModelSpec& spec);
/// Qwen3-VL: trained positions, and a merger for each of deepstack_visual_indexes.
void read_qwen3_vl_tower(ConfigReader& config, ModelSpec& spec);
/// Qwen3.5: Qwen3-VL's tower without those further mergers.
void read_qwen3_5_tower(ConfigReader& config, ModelSpec& spec);
/// GLM-4.1V, GLM-4.5V.
void read_glm4v_tower(ConfigReader& config, ModelSpec& spec);
/// Kimi K2.5: MoonViT and a merger of 2×2 patches.
void read_kimi_tower(ConfigReader& config, ModelSpec& spec);
/// Kimi K3: the same with RMSNorm, without biases, and with heads of a width of their own.
void read_kimi_k3_tower(ConfigReader& config, ModelSpec& spec);
/// Muse Glimmer: MoonViT's layers in windows, norms before and behind them, an MLP of three layers.
void read_muse_glimmer_tower(ConfigReader& config, ModelSpec& spec);
/// Voxtral: Whisper's encoder and an MLP of two layers.
void read_voxtral_tower(ConfigReader& config, ModelSpec& spec);
void read_qwen2_audio_tower(ConfigReader& config, ModelSpec& spec);
/// LLaVA-NeXT and LLaVA-OneVision: CLIP or SigLIP on tiles of an image, an MLP of two layers, a
/// vector that ends each row of patches. Throws Error{invalid_input} without vision_config.
void read_llava_next_tower(ConfigReader& config, ModelSpec& spec);
void read_llava_onevision_tower(ConfigReader& config, ModelSpec& spec);
/// LLaVA-NeXT-Video: LLaVA-NeXT, whose frames are pooled.
void read_llava_next_video_tower(ConfigReader& config, ModelSpec& spec);
/// MiniCPM-V: SigLIP on images of any shape, and a resampler: trained queries that attend to it.
void count_minicpmv_tower(ConfigReader& config, ModelSpec& spec);
/// GOT-OCR 2: the encoder of Segment Anything, two convolutions and a linear layer.
void count_got_ocr2_tower(ConfigReader& config, ModelSpec& spec);
/// GLM-OCR: GLM-4.1V's tower with norms of its heads, without a table of positions.
void read_glm_ocr_tower(ConfigReader& config, ModelSpec& spec);
/// GLM-5.3: GLM-OCR's tower with clamped activations.
void read_glm5_next_tower(ConfigReader& config, ModelSpec& spec);
/// PaddleOCR-VL: SigLIP with 2-D RoPE, and a merger of 2×2 patches.
void read_paddleocr_vl_tower(ConfigReader& config, ModelSpec& spec);
/// ERNIE 4.5 VL: Qwen2-VL's layers, and mergers of patches and of frames.
void count_ernie4_5_vl_tower(ConfigReader& config, ModelSpec& spec);
/// ERNIE 4.5 VL's tower by the keys of Baidu's class (Ernie4_5_VLMoEConfig).
void count_ernie4_5_moe_vl_tower(ConfigReader& config, ModelSpec& spec);
/// Qwen3-ASR: the audio encoder of Qwen3-Omni.
void read_qwen3_asr_tower(ConfigReader& config, ModelSpec& spec);
/// EXAONE 4.5: Qwen2.5-VL's tower with grouped-query attention.
void read_exaone4_5_tower(ConfigReader& config, ModelSpec& spec);
/// HyperCLOVA X Vision: Qwen2.5-VL's tower and a linear projector.
void read_hyperclovax_vision_tower(ConfigReader& config, ModelSpec& spec);
/// Audio Flamingo 3: Whisper's encoder, an average of two rows, an MLP of two layers.
void read_audioflamingo3_tower(ConfigReader& config, ModelSpec& spec);
/// Music Flamingo: Audio Flamingo 3, whose rows are turned by their time.
void read_musicflamingo_tower(ConfigReader& config, ModelSpec& spec);
/// VideoLLaMA 3: SigLIP with 2-D RoPE in place of positions, an MLP of two layers.
void read_video_llama3_tower(ConfigReader& config, ModelSpec& spec);
/// Idefics2: SigLIP, an MLP, and a resampler of latents.
void count_idefics2_tower(ConfigReader& config, ModelSpec& spec);
/// GLM-ASR: Whisper's layers with RoPE, rows side by side, an MLP of two layers.
void read_glm_asr_tower(ConfigReader& config, ModelSpec& spec);
/// VIP-LLaVA: CLIP, the states of five layers side by side, a norm and an MLP.
void read_vipllava_tower(ConfigReader& config, ModelSpec& spec);
/// Video-LLaVA: CLIP for images, another for frames, which is counted, an MLP of two layers.
void read_video_llava_tower(ConfigReader& config, ModelSpec& spec);
/// BLIP-2: a vision transformer, and a Q-Former whose trained queries attend to its features.
void read_blip2_towers(ConfigReader& config, ModelSpec& spec);
/// Granite Speech: a Conformer with words of its own, and a Q-Former on windows of its states.
void count_granite_speech_tower(ConfigReader& config, ModelSpec& spec);
/// Granite Speech Plus: the same, on states of several of its layers side by side.
void count_granite_speech_plus_tower(ConfigReader& config, ModelSpec& spec);
/// Aria: SigLIP, and trained queries that attend to its features.
void read_aria_tower(ConfigReader& config, ModelSpec& spec);
/// Molmo 2: SigLIP, attention that pools the states of two layers, a gated network.
void count_molmo2_tower(ConfigReader& config, ModelSpec& spec);
/// Ovis 2: AIMv2, a distribution over visual words, and a table of their embeddings.
void count_ovis2_tower(ConfigReader& config, ModelSpec& spec);
/// Phi-3 Vision: CLIP on tiles of an image, blocks of 2 × 2 patches, an MLP.
void read_phi3_v_tower(ConfigReader& config, ModelSpec& spec);
/// Phi-4 multimodal's images: SigLIP on tiles of an image, means of 2 × 2 patches, an MLP.
void read_phi4_vision_tower(ConfigReader& config, ModelSpec& spec);
/// Phi-4 multimodal: its image tower, and a Conformer and an MLP for each of two kinds of prompt,
/// which are counted.
void read_phi4_multimodal_towers(ConfigReader& config, ModelSpec& spec);
/// Phi-4 multimodal as Microsoft publishes it: those towers, and an adapter (LoRA) on the text
/// model for images and one for speech, whose weights its files hold.
void read_phi4mm_towers(ConfigReader& config, ModelSpec& spec);
/// Qwen2.5-Omni: Qwen2.5-VL's tower, and Whisper's encoder on short segments of sound.
void read_qwen2_5_omni_towers(ConfigReader& config, ModelSpec& spec);
/// Qwen3-Omni: Qwen3-VL's tower, and Whisper's layers behind three 2-D convolutions.
void read_qwen3_omni_towers(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
