"""Configs of the text models and towers that make_towers.py and its like put together."""

TEXT = {"model_type": "llama", "hidden_size": 48, "intermediate_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
        "vocab_size": 101, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
CLIP = {"model_type": "clip_vision_model", "hidden_size": 40, "intermediate_size": 56,
        "num_attention_heads": 5, "num_hidden_layers": 3, "image_size": 12, "patch_size": 4,
        "projection_dim": 20}
SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 40, "intermediate_size": 56,
          "num_attention_heads": 5, "num_hidden_layers": 3, "image_size": 12, "patch_size": 4}
INTERNVL = {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
            "num_hidden_layers": 3, "image_size": [16, 16], "patch_size": [4, 4]}
LLAMA4_TEXT = {**TEXT, "model_type": "llama4_text", "intermediate_size_mlp": 72,
               "num_local_experts": 2, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
               "head_dim": 12, "attention_chunk_size": 16, "no_rope_layers": [1, 0]}
LLAMA4_VISION = {"hidden_size": 40, "intermediate_size": 160, "num_attention_heads": 5,
                 "num_hidden_layers": 2, "image_size": 16, "patch_size": 4,
                 "projector_input_dim": 36, "projector_output_dim": 36, "vision_output_dim": 36,
                 "pixel_shuffle_ratio": 0.5}
KIMI_TEXT = {**TEXT, "model_type": "deepseek_v3", "num_key_value_heads": 4, "q_lora_rank": 20,
             "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
             "first_k_dense_replace": 2, "n_routed_experts": 4, "num_experts_per_tok": 2,
             "n_shared_experts": 1, "moe_intermediate_size": 20, "n_group": 1, "topk_group": 1}
KIMI_VISION = {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
               "num_hidden_layers": 2, "patch_size": 4, "pos_emb_height": 6, "pos_emb_width": 6}
GEMMA4_TEXT = {"model_type": "gemma4_text", "hidden_size": 32, "intermediate_size": 40,
               "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
               "head_dim": 12, "global_head_dim": 16, "vocab_size": 101, "sliding_window": 3,
               "vocab_size_per_layer_input": 101, "hidden_size_per_layer_input": 14,
               "layer_types": ["sliding_attention", "full_attention", "full_attention"],
               "num_kv_shared_layers": 0, "max_position_embeddings": 96,
               "use_bidirectional_attention": "vision", "pad_token_id": 0}
GEMMA4_VISION = {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
                 "num_key_value_heads": 5, "num_hidden_layers": 2, "head_dim": 8, "patch_size": 4,
                 "pooling_kernel_size": 2, "position_embedding_size": 12, "standardize": True}
LFM2_TEXT = {"model_type": "lfm2", "hidden_size": 48, "intermediate_size": 64,
             "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
             "vocab_size": 101, "max_position_embeddings": 128, "block_auto_adjust_ff_dim": False,
             "layer_types": ["conv", "full_attention", "conv"]}
COHERE2_TEXT = {**{key: value for key, value in TEXT.items() if key != "rms_norm_eps"},
                "model_type": "cohere2", "layer_norm_eps": 1e-5, "sliding_window": 16,
                "head_dim": 12, "layer_types": ["sliding_attention", "full_attention"],
                "logit_scale": 0.25}
SIGLIP16 = {**SIGLIP, "image_size": 16}
SIGLIP2 = {"model_type": "siglip2_vision_model", "hidden_size": 40, "intermediate_size": 56,
           "num_attention_heads": 5, "num_hidden_layers": 2, "num_patches": 9, "patch_size": 4,
           "vision_use_head": False}
GLM4V_MOE_TEXT = {**TEXT, "model_type": "glm4v_moe_text", "head_dim": 12, "n_routed_experts": 4,
                  "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 20,
                  "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
                  "routed_scaling_factor": 1.5, "attention_bias": True,
                  "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                      "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 1]}}
GLM4V_VISION = {"depth": 2, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
                "image_size": 16, "patch_size": 4, "out_hidden_size": 48}
DINO = {"hidden_size": 40, "num_attention_heads": 5, "num_hidden_layers": 2, "image_size": 24,
        "patch_size": 6, "num_register_tokens": 3, "layer_norm_eps": 1e-5}
ALONE = {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
         "num_hidden_layers": 2}
TEXT_ALONE = {**ALONE, "vocab_size": 50, "max_position_embeddings": 12}
IMAGE_ALONE = {**ALONE, "image_size": 12, "patch_size": 4}
SOUND = {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2,
         "intermediate_size": 80, "conv_dim": [16, 20], "conv_kernel": [10, 3],
         "conv_stride": [5, 2], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 6,
         "num_conv_pos_embedding_groups": 4, "vocab_size": 31, "classifier_proj_size": 12,
         "num_labels": 5, "mask_time_prob": 0.0, "apply_spec_augment": False}

VOXTRAL = {"hidden_size": 32, "intermediate_size": 128, "num_attention_heads": 4,
           "num_hidden_layers": 2, "num_mel_bins": 16, "max_source_positions": 20}

QWEN2_AUDIO = {"d_model": 32, "encoder_ffn_dim": 48, "encoder_attention_heads": 4,
               "encoder_layers": 2, "num_mel_bins": 16, "max_source_positions": 10}
PIXTRAL = {"model_type": "pixtral", "hidden_size": 40, "intermediate_size": 56, "head_dim": 8,
           "num_attention_heads": 5, "num_hidden_layers": 2, "image_size": 32, "patch_size": 4}

OMNI_TEXT = {**TEXT, "model_type": "qwen2_5_omni_text", "tie_word_embeddings": False,
             "rope_parameters": {"rope_type": "default", "rope_theta": 1e6,
                                 "mrope_section": [2, 2, 2]}}
OMNI_AUDIO = {"d_model": 32, "encoder_ffn_dim": 48, "encoder_attention_heads": 4,
              "encoder_layers": 2, "num_mel_bins": 20, "max_source_positions": 50, "n_window": 10,
              "output_dim": 48}
OMNI_VISION = {"depth": 2, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
               "patch_size": 4, "window_size": 16, "fullatt_block_indexes": [1],
               "out_hidden_size": 48}

OMNI3_TEXT = {**OMNI_TEXT, "model_type": "qwen3_omni_moe_text", "head_dim": 12, "num_experts": 4,
              "num_experts_per_tok": 2, "moe_intermediate_size": 20, "norm_topk_prob": True}
OMNI3_AUDIO = {**OMNI_AUDIO, "n_window": 50, "n_window_infer": 200, "downsample_hidden_size": 6}
OMNI3_VISION = {"depth": 2, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
                "patch_size": 4, "num_position_embeddings": 16, "out_hidden_size": 48,
                "deepstack_visual_indexes": [0]}
