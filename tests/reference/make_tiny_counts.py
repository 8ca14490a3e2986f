#!/usr/bin/env python3
"""Writes tiny configs of families that are counted, with the parameters of their classes.

usage: make_tiny_counts.py [FOLDER]   (default: tests/data/towers)

Needs torch and transformers 5. Configs are as save_pretrained writes them; models are on the meta
device; tied weights count once. Rows of other models in tiny.csv stay as they are.
"""

import csv
import json
import sys
from pathlib import Path

import torch
import transformers

TEXT = {"hidden_size": 48, "intermediate_size": 72, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 3, "vocab_size": 101,
        "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA = {**TEXT, "model_type": "llama"}
ENCODER = {key: TEXT[key] for key in ("hidden_size", "intermediate_size", "num_attention_heads",
                                      "num_hidden_layers", "vocab_size", "pad_token_id")}
CLIP = {"model_type": "clip_vision_model", "hidden_size": 40, "intermediate_size": 56,
        "num_attention_heads": 5, "num_hidden_layers": 4, "image_size": 12, "patch_size": 4,
        "projection_dim": 20}
SIGLIP = {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
          "num_hidden_layers": 2, "image_size": 16, "patch_size": 4}
LATENT = {"q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
          "v_head_dim": 12, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
          "topk_group": 1, "moe_intermediate_size": 20}
WHISPER = {"hidden_size": 40, "d_model": 40, "intermediate_size": 56, "encoder_ffn_dim": 56,
           "num_attention_heads": 5, "encoder_attention_heads": 5, "num_hidden_layers": 2,
           "encoder_layers": 2, "num_mel_bins": 16, "max_source_positions": 20}
QUERY_FORMER = {"model_type": "blip_2_qformer", "hidden_size": 36, "intermediate_size": 52,
                "num_attention_heads": 6, "num_hidden_layers": 3, "encoder_hidden_size": 40,
                "cross_attention_frequency": 2}
QWEN_TOWER = {"hidden_size": 48, "intermediate_size": 64, "num_heads": 4, "depth": 3,
              "patch_size": 4, "out_hidden_size": 48, "fullatt_block_indexes": [1]}
BART = {"d_model": 48, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
        "decoder_attention_heads": 6, "encoder_ffn_dim": 64, "decoder_ffn_dim": 56,
        "vocab_size": 101, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2, "decoder_start_token_id": 1}
GPT = {"n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 101,
       "bos_token_id": 1, "eos_token_id": 2}

GLM5_TEXT = {**TEXT, "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "v_head_dim": 10,
             "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
             "linear_num_heads": 3, "linear_head_dim": 8, "hc_mult": 3, "index_n_heads": 12,
             "index_head_dim": 8, "index_topk": 6, "index_kpool": 3, "num_key_value_heads": 4,
             "layer_types": ["linear_attention", "indexed_attention"] * 2, "num_hidden_layers": 4,
             "mlp_layer_types": ["dense", "sparse", "sparse", "dense"]}
MUSE_TEXT = {**TEXT, "head_dim": 12, "sliding_window": 7, "num_hidden_layers": 5}

MODELS = {
    "glm5_next": ("Glm5NextForConditionalGeneration", {
        "text_config": GLM5_TEXT,
        "vision_config": {"depth": 2, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
                          "image_size": 16, "patch_size": 4, "out_hidden_size": 48,
                          "projection_intermediate_size": 68},
        "image_token_id": 97, "video_token_id": 96}),
    "glm5_next_text": ("Glm5NextTextModel", GLM5_TEXT),
    "muse_glimmer": ("MuseGlimmerForConditionalGeneration", {
        "text_config": MUSE_TEXT, "projector_hidden_size": 44, "out_hidden_size": 160,
        "vision_config": {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
                          "num_hidden_layers": 5, "patch_size": 4, "pos_emb_height": 6,
                          "pos_emb_width": 6}, "image_token_id": 97, "video_token_id": 96}),
    "muse_glimmer_text": ("MuseGlimmerTextModel", MUSE_TEXT),
    "flint": ("FlintForCausalLM", {**TEXT, "num_experts": 4, "num_experts_per_tok": 2,
                                   "moe_intermediate_size": 20, "head_dim": 12,
                                   "shared_expert_intermediate_size": 28}),
    "lara_mini": ("LaraMiniForCausalLM", {**TEXT, "num_experts": 4, "num_experts_per_tok": 2,
                                          "moe_intermediate_size": 20, "head_dim": 12,
                                          "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                                          "linear_key_head_dim": 8, "linear_value_head_dim": 6}),
    "hy_v4": ("HYV4ForCausalLM", {**TEXT, **LATENT, "num_key_value_heads": 4, "index_n_heads": 3,
                                   "index_head_dim": 8, "index_topk": 6, "hc_mult": 3}),
    "axk2": ("AXK2ForCausalLM", {**TEXT, **LATENT, "num_key_value_heads": 4, "index_n_heads": 3,
                                 "index_head_dim": 8, "index_topk": 6, "gated_norm_rank": 5}),
    "axk1": ("AXK1ForCausalLM", {**TEXT, **LATENT, "num_key_value_heads": 4}),
    "aria": ("AriaForConditionalGeneration", {
        "text_config": {**TEXT, "moe_num_experts": 4, "moe_topk": 2, "moe_num_shared_experts": 1},
        "vision_config": {**SIGLIP, "model_type": "idefics3_vision"},
        "projector_patch_to_query_dict": {16: 5, 64: 7}}),
    "audioflamingo3": ("AudioFlamingo3ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"}, "audio_token_id": 100,
        "audio_config": {key: value for key, value in WHISPER.items()
                         if not key.startswith("encoder_") and key != "d_model"}}),
    "beit": ("BeitForImageClassification", {
        **{key: value for key, value in ENCODER.items() if key not in ("vocab_size",
                                                                      "pad_token_id")},
        "image_size": 12, "patch_size": 4, "use_relative_position_bias": True, "num_labels": 5}),
    "beit_masked": ("BeitForMaskedImageModeling", {
        **{key: value for key, value in ENCODER.items() if key != "pad_token_id"},
        "image_size": 12, "patch_size": 4, "use_shared_relative_position_bias": True,
        "use_absolute_position_embeddings": True, "use_mask_token": True,
        "use_mean_pooling": False}),
    "big_bird": ("BigBirdForSequenceClassification", {
        **ENCODER, "max_position_embeddings": 64, "type_vocab_size": 3, "use_bias": False,
        "attention_type": "original_full"}),
    "blip_2": ("Blip2ForConditionalGeneration", {
        "text_config": {"model_type": "opt", "hidden_size": 48, "word_embed_proj_dim": 48,
                        "ffn_dim": 72, "num_attention_heads": 4, "num_hidden_layers": 3,
                        "vocab_size": 101, "max_position_embeddings": 64, "pad_token_id": 1},
        "vision_config": {**SIGLIP, "qkv_bias": False}, "qformer_config": QUERY_FORMER,
        "num_query_tokens": 6}),
    "blenderbot_small": ("BlenderbotSmallForConditionalGeneration", BART),
    "data2vec_vision": ("Data2VecVisionForImageClassification", {
        **{key: value for key, value in ENCODER.items() if key not in ("vocab_size",
                                                                      "pad_token_id")},
        "image_size": 12, "patch_size": 4, "use_relative_position_bias": True,
        "layer_scale_init_value": 0.0}),
    "dbrx": ("DbrxForCausalLM", {
        "d_model": 48, "n_heads": 4, "n_layers": 3, "max_seq_len": 128, "vocab_size": 101,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 500000.0},
        "ffn_config": {"hidden_size": 48, "ffn_hidden_size": 20, "moe_num_experts": 4,
                       "moe_top_k": 2}}),
    "ernie4_5_vl_moe": ("Ernie4_5_VLMoeForConditionalGeneration", {
        "text_config": {**TEXT, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": [20, 12],
                        "moe_num_shared_experts": 1, "use_bias": True,
                        "mlp_layer_types": ["dense", "sparse", "sparse"],
                        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0,
                                            "mrope_section": [2, 2, 2]}},
        "vision_config": {"hidden_size": 40, "depth": 2, "num_heads": 5, "patch_size": 4,
                          "intermediate_size": 56}}),
    "exaone4_5": ("Exaone4_5_ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "exaone4"},
        "vision_config": {**QWEN_TOWER, "num_key_value_heads": 2}}),
    "florence2": ("Florence2ForConditionalGeneration", {
        "text_config": {**BART, "model_type": "bart"}, "image_token_id": 100,
        "vision_config": {"embed_dim": [8, 16, 24, 32], "depths": [1, 2, 1, 1],
                          "num_heads": [1, 2, 3, 4], "num_groups": [1, 2, 3, 4],
                          "patch_size": [5, 3, 3, 3], "projection_dim": 48,
                          "max_position_embeddings": 10}}),
    "gemma4_unified": ("Gemma4UnifiedForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 16, "global_head_dim": 24, "num_key_value_heads": 2,
                        "num_global_key_value_heads": 1, "attention_k_eq_v": True,
                        "sliding_window": 8, "num_hidden_layers": 6},
        "vision_config": {"patch_size": 2, "pooling_kernel_size": 3, "mm_embed_dim": 40,
                          "mm_posemb_size": 10, "output_proj_dims": 40},
        "audio_config": {"audio_embed_dim": 20}}),
    "glm_ocr": ("GlmOcrForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 16},
        "vision_config": {"hidden_size": 40, "intermediate_size": 56, "num_heads": 5, "depth": 2,
                          "patch_size": 4, "image_size": 16, "out_hidden_size": 48}}),
    "glmasr": ("GlmAsrForConditionalGeneration", {
        "text_config": LLAMA, "audio_token_id": 100,
        "audio_config": {"hidden_size": 40, "intermediate_size": 160, "num_attention_heads": 5,
                         "num_hidden_layers": 2, "num_mel_bins": 16,
                         "max_position_embeddings": 20}}),
    "got_ocr2": ("GotOcr2ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"},
        "vision_config": {"hidden_size": 40, "mlp_dim": 56, "num_attention_heads": 5,
                          "num_hidden_layers": 3, "image_size": 32, "patch_size": 4,
                          "output_channels": 24, "window_size": 3, "global_attn_indexes": [1]}}),
    "granite_speech": ("GraniteSpeechForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "granite"}, "projector_config": QUERY_FORMER,
        "encoder_config": {"input_dim": 12, "num_layers": 3, "hidden_dim": 40, "num_heads": 4,
                           "dim_head": 8, "feedforward_mult": 3, "conv_kernel_size": 5,
                           "conv_expansion_factor": 2, "max_pos_emb": 16, "context_size": 10,
                           "output_dim": 14},
        "window_size": 9, "downsample_rate": 3, "tie_word_embeddings": False}),
    "granite_speech_plus": ("GraniteSpeechPlusForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "granite"},
        "projector_config": {**QUERY_FORMER, "encoder_hidden_size": 120},
        "encoder_config": {"input_dim": 12, "num_layers": 3, "hidden_dim": 40, "num_heads": 4,
                           "dim_head": 8, "feedforward_mult": 3, "conv_kernel_size": 5,
                           "conv_expansion_factor": 2, "max_pos_emb": 16, "context_size": 10,
                           "output_dim": 14, "cat_hidden_layers": [0, 2]},
        "window_size": 9, "downsample_rate": 3, "tie_word_embeddings": False}),
    "granite_swa": ("GraniteSWAForCausalLM", {**TEXT, "sliding_window": 16}),
    "granitemoe_swa": ("GraniteMoeSWAForCausalLM", {
        **TEXT, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 24}),
    "gte": ("GteForSequenceClassification", {**ENCODER, "type_vocab_size": 0, "num_labels": 3}),
    "gpt2_double_heads": ("GPT2DoubleHeadsModel", GPT),
    "hyperclovax_vision_v2": ("HyperCLOVAXVisionV2ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "hyperclovax"},
        "vision_config": {**QWEN_TOWER, "model_type": "qwen2_5_vl_vision", "out_hidden_size": 36}}),
    "idefics2": ("Idefics2ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "mistral"}, "vision_config": {**SIGLIP},
        "perceiver_config": {"hidden_size": 48, "resampler_n_latents": 6, "resampler_depth": 2,
                             "resampler_n_heads": 4, "resampler_head_dim": 10,
                             "num_key_value_heads": 2}}),
    "layoutlm": ("LayoutLMForTokenClassification", {
        **ENCODER, "max_position_embeddings": 64, "type_vocab_size": 2,
        "max_2d_position_embeddings": 20, "num_labels": 5}),
    "layoutlmv3": ("LayoutLMv3ForTokenClassification", {
        **ENCODER, "max_position_embeddings": 64, "max_2d_position_embeddings": 20,
        "coordinate_size": 10, "shape_size": 4, "input_size": 12, "patch_size": 4,
        "rel_pos_bins": 6, "rel_2d_pos_bins": 8, "num_labels": 12}),
    "layoutlmv3_spans": ("LayoutLMv3ForQuestionAnswering", {
        **ENCODER, "max_position_embeddings": 64, "max_2d_position_embeddings": 20,
        "coordinate_size": 8, "shape_size": 8, "visual_embed": False,
        "has_spatial_attention_bias": False}),
    "lfm3": ("Lfm3ForCausalLM", {**TEXT, "head_dim": 16, "num_hidden_layers": 6}),
    "llava_next_video": ("LlavaNextVideoForConditionalGeneration", {
        "text_config": LLAMA, "vision_config": CLIP, "image_grid_pinpoints": [[24, 12], [12, 24]]}),
    "longcat_flash": ("LongcatFlashForCausalLM", {
        **{key: value for key, value in TEXT.items() if key not in (
            "intermediate_size", "num_hidden_layers", "num_key_value_heads")},
        "num_layers": 2, "ffn_hidden_size": 72, "expert_ffn_hidden_size": 20, "moe_topk": 3,
        "n_routed_experts": 4, "zero_expert_num": 2, "q_lora_rank": 20, "kv_lora_rank": 16,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "head_dim": 4, "v_head_dim": 12}),
    "hunyuan_vl": ("HunYuanVLForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 12},
        "vision_config": {**{key: SIGLIP[key] for key in ("hidden_size", "intermediate_size",
                                                          "num_attention_heads",
                                                          "num_hidden_layers", "patch_size")},
                          "max_image_size": 20, "text_hidden_size": 48}}),
    "hy_v4_vl": ("HYV4VLForConditionalGeneration", {
        "text_config": {**TEXT, **LATENT, "num_key_value_heads": 4, "index_n_heads": 3,
                        "index_head_dim": 8, "index_topk": 6, "hc_mult": 3,
                        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                            "mrope_section": [1, 1, 0]}},
        "vision_config": {"hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 2,
                          "num_attention_heads": 5, "patch_size": 4, "max_image_size": 16,
                          "out_hidden_size": 48},
        "image_token_id": 10, "video_token_id": 11}),
    "lfm3_vl": ("Lfm3VlForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "lfm3",
                        "layer_types": ["conv", "full_attention", "conv"]},
        "vision_config": {"hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 5,
                          "num_attention_heads": 5, "num_key_value_heads": 5, "patch_size": 4,
                          "conv_kernel_size": 3},
        "projector_hidden_size": 36, "image_token_id": 10, "video_token_id": 11,
        "vision_start_token_id": 12, "vision_end_token_id": 13}),
    "nemotron_h_omni": ("NemotronH_Omni_Reasoning_V3", {
        "text_config": {**TEXT, "model_type": "nemotron_h", "layers_block_type": ["mamba", "moe", "attention"],
                        "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 8,
                        "n_routed_experts": 4, "moe_intermediate_size": 20,
                        "moe_shared_expert_intermediate_size": 28, "head_dim": 12,
                        "num_nextn_predict_layers": 1},
        "vision_config": {"model_type": "radio", "hidden_size": 40, "num_hidden_layers": 2,
                          "num_attention_heads": 5, "patch_size": 4, "max_img_size": 32,
                          "video_temporal_patch_size": 2, "mlp_ratio": 1.5},
        "audio_config": {"model_type": "parakeet_encoder", "hidden_size": 32, "num_hidden_layers": 2,
                         "num_attention_heads": 4, "intermediate_size": 56, "num_mel_bins": 16,
                         "subsampling_conv_channels": 12, "projection_hidden_size": 36,
                         "projection_bias": True},
        "vision_hidden_size": 40, "projector_hidden_size": 44, "image_token_id": 10,
        "audio_token_id": 11}),
    "minicpmv4_6": ("MiniCPMV4_6ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen3_5_text", "head_dim": 16,
                        "num_hidden_layers": 4, "linear_num_key_heads": 2,
                        "linear_num_value_heads": 4, "linear_key_head_dim": 8,
                        "linear_value_head_dim": 8},
        "vision_config": {**SIGLIP, "num_hidden_layers": 3}, "insert_layer_id": 1,
        "merger_times": 2}),
    "mistral_large4": ("MistralLarge4ForConditionalGeneration", {
        "text_config": {**TEXT, **{key: value for key, value in LATENT.items()
                                   if key != "q_lora_rank"},
                        "num_key_value_heads": 4, "num_hidden_layers": 5, "index_topk": 6,
                        "index_head_dim": 8, "index_n_heads": 3,
                        "kv_source_layers": [0, 0, 2, 3, 2]},
        "vision_config": {key: value for key, value in CLIP.items() if key != "projection_dim"}
        | {"model_type": "pixtral", "head_dim": 8}}),
    "modernbert_decoder": ("ModernBertDecoderForCausalLM", {
        **ENCODER, "local_attention": 8, "norm_bias": True, "attention_bias": True}),
    "molmo2": ("Molmo2ForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 16, "additional_vocab_size": 7},
        "vision_config": {**SIGLIP, "head_dim": 6, "image_size": [16, 16], "num_key_value_heads": 5},
        "adapter_config": {"vision_feature_layer": [-1, -2], "hidden_size": 40,
                           "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 6,
                           "intermediate_size": 44, "text_hidden_size": 48}}),
    "musicflamingo": ("MusicFlamingoForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"}, "audio_token_id": 100,
        "audio_config": {key: value for key, value in WHISPER.items()
                         if not key.startswith("encoder_") and key != "d_model"}
        | {"model_type": "audioflamingo3_encoder"}}),
    "nanochat": ("NanoChatForCausalLM", {**TEXT, "attention_bias": True}),
    "ovis2": ("Ovis2ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"}, "hidden_size": 48,
        "vision_config": {**SIGLIP, "vocab_size": 50, "hidden_stride": 2,
                          "num_visual_indicator_tokens": 3, "qkv_bias": True}}),
    "paddleocr_vl": ("PaddleOCRVLForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 16, "use_bias": True},
        "vision_config": {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
                          "num_hidden_layers": 2, "image_size": 16, "patch_size": 4}}),
    "persimmon": ("PersimmonForCausalLM", {key: value for key, value in TEXT.items()
                                           if key != "num_key_value_heads"}),
    "phi4_multimodal": ("Phi4MultimodalForCausalLM", {
        **TEXT, "vision_config": {**SIGLIP, "crop_size": 16},
        "audio_config": {"hidden_size": 40, "intermediate_size": 28, "num_attention_heads": 5,
                         "num_blocks": 3, "ext_pw_out_channel": 40, "input_size": 13,
                         "depthwise_separable_out_channel": 40, "kernel_size": 3,
                         "time_reduction": 4, "bias_max_distance": 20, "bias_symmetric": True,
                         "nemo_conv_channels": 12}}),
    "qwen3_asr": ("Qwen3ASRForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen3", "head_dim": 16}, "audio_token_id": 100,
        "audio_config": {key: value for key, value in WHISPER.items()
                         if key.startswith("encoder_") or key in ("d_model", "num_mel_bins")}
        | {"model_type": "qwen3_asr_encoder", "downsample_hidden_size": 6, "output_dim": 48}}),
    "rembert": ("RemBertForMaskedLM", {
        **ENCODER, "input_embedding_size": 20, "output_embedding_size": 60,
        "max_position_embeddings": 64}),
    "rembert_classifier": ("RemBertForTokenClassification", {
        **ENCODER, "input_embedding_size": 20, "output_embedding_size": 60,
        "max_position_embeddings": 64, "num_labels": 5}),
    "step3p7": ("Step3p7ForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
                        "moe_intermediate_size": 20, "share_expert_dim": 24,
                        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                        "num_sliding_attention_heads": 6, "sliding_window": 8,
                        "mlp_layer_types": ["dense", "sparse", "sparse"]},
        "vision_config": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                          "mlp_ratio": 2.5, "image_size": 16, "patch_size": 4}}),
    "openai_gpt_double_heads": ("OpenAIGPTDoubleHeadsModel", GPT),
    "trocr": ("TrOCRForCausalLM", {
        **{key: value for key, value in BART.items() if not key.startswith("encoder")},
        "cross_attention_hidden_size": 40, "layernorm_embedding": False}),
    "unispeech": ("UniSpeechForSequenceClassification", {
        **ENCODER, "conv_dim": [24, 24], "conv_kernel": [4, 3], "conv_stride": [2, 2],
        "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 4, "classifier_proj_size": 20}),
    "unispeech_sat": ("UniSpeechSatForCTC", {**ENCODER, "feat_extract_norm": "layer",
                                             "do_stable_layer_norm": True}),
    "video_llama_3": ("VideoLlama3ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"},
        "vision_config": {key: value for key, value in SIGLIP.items() if key != "image_size"}}),
    "video_llava": ("VideoLlavaForConditionalGeneration", {
        "text_config": LLAMA, "vision_config": CLIP}),
    "vipllava": ("VipLlavaForConditionalGeneration", {
        "text_config": LLAMA, "vision_config": CLIP, "vision_feature_layer": [-2, 1]}),
    "vit_msn": ("ViTMSNForImageClassification", {
        **{key: value for key, value in ENCODER.items() if key not in ("vocab_size",
                                                                      "pad_token_id")},
        "image_size": 12, "patch_size": 4, "qkv_bias": False, "num_labels": 5}),
}


def parameters(model):
    total = sum({id(weight): weight.numel() for weight in model.parameters()}.values())
    config = model.config
    if config.model_type != "longcat_flash":
        return total
    # The class allocates gates and inputs of the experts that compute nothing; files lack them.
    idle = config.zero_expert_num * 2 * config.expert_ffn_hidden_size * config.hidden_size
    return total - config.num_layers * idle


root = Path(__file__).resolve().parent.parent / "data/towers"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root
with open(folder / "tiny.csv", newline="") as file:
    rows = [row for row in csv.reader(file) if row[0] not in MODELS]
for name, (class_name, keys) in MODELS.items():
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(architectures=[class_name], **keys)
    with torch.device("meta"):
        model = model_class(config)
    model.tie_weights()
    config.to_json_file(folder / "tiny" / f"{name}.config.json")
    rows.append([name, class_name, parameters(model)])
vit = transformers.ViTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                             intermediate_size=64, image_size=12, patch_size=4)
captions = transformers.GPT2Config(n_embd=40, n_layer=2, n_head=4, n_positions=32, vocab_size=101,
                                   bos_token_id=1, eos_token_id=2)
config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(vit, captions)
config.architectures = ["VisionEncoderDecoderModel"]
with torch.device("meta"):
    model = transformers.VisionEncoderDecoderModel(config=config)
model.tie_weights()
config.to_json_file(folder / "tiny" / "vision_encoder_decoder.config.json")
rows = [row for row in rows if row[0] != "vision_encoder_decoder"]
rows.append(["vision_encoder_decoder", "VisionEncoderDecoderModel", parameters(model)])
# Of code that transformers lacks: SOLAR Pro has Llama's parameters, Hunyuan-Large those of its
# successor without the keys and values that every second layer takes from the one before.
SHARED = {**TEXT, "tie_word_embeddings": True, "rope_theta": 10000.0, "torch_dtype": "bfloat16"}
HUNYUAN = {**SHARED, "head_dim": 12, "num_experts": 4, "moe_topk": 1}
OWN = {
    "solar": (transformers.LlamaForCausalLM, SHARED, 0, {
        "architectures": ["SolarForCausalLM"], "sliding_window": 2047, "bskcn_1": [0],
        "bskcn_2": [1], "bskcn_3": [1], "bskcn_4": [2], "bskcn_tv": [0.9, 0.8]}),
    "hunyuan": (transformers.HunYuanMoEV1ForCausalLM, HUNYUAN, 2 * 48 * 2 * 12, {
        "architectures": ["HunYuanForCausalLM"], "use_cla": True, "cla_share_factor": 2,
        "num_shared_expert": 1, "use_mixed_mlp_moe": True, "use_qk_norm": True}),
}
for name, (model_class, keys, absent, own) in OWN.items():
    with torch.device("meta"):
        model = model_class(model_class.config_class(**keys))
    model.tie_weights()
    text = json.dumps({"model_type": name, **keys, **own}, indent=2, sort_keys=True)
    (folder / "tiny" / f"{name}.config.json").write_text(text + "\n")
    rows = [row for row in rows if row[0] != name]
    rows.append([name, own["architectures"][0], parameters(model) - absent])
with open(folder / "tiny.csv", "w", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows(rows)
