#!/usr/bin/env python3
"""Makes tiny multimodal models with images, the reference's outputs, and greedily generated tokens.

usage: make_wrapped_towers.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all models)

As make_towers.py, whose sizes it shares. Needs torch, transformers and safetensors.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from make_towers import (CLIP, IMAGE, KIMI_TEXT, KIMI_VISION, ROOT, TEXT, draw_weights, generate,
                         patches, pixels, prompt, published_name, record, typed)
from safetensors.torch import load_file, save_file

TEXT_QWEN2 = {**TEXT, "model_type": "qwen2"}
ENCODER = {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
           "num_hidden_layers": 2, "patch_size": 4}
SECTIONS = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 2]}
MINIMAX_M3 = {"model_type": "minimax_m3_vl_text", "hidden_size": 32, "head_dim": 12,
              "dense_intermediate_size": 40, "intermediate_size": 16, "num_attention_heads": 4,
              "shared_intermediate_size": 24, "num_key_value_heads": 2, "num_hidden_layers": 2,
              "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 101, "rotary_dim": 6,
              "max_position_embeddings": 128, "index_block_size": 3, "index_head_dim": 16,
              "index_local_blocks": 1, "index_n_heads": 2, "index_topk_blocks": 2,
              "layer_types": ["full_attention", "minimax_m3_sparse"],
              "mlp_layer_types": ["dense", "sparse"], "bos_token_id": 0, "pad_token_id": None,
              "eos_token_id": None,
              "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                  "partial_rotary_factor": 0.5}}
PHI4_TEXT = {"hidden_size": 48, "intermediate_size": 64, "num_attention_heads": 4,
             "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 101,
             "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2,
             "pad_token_id": 0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
PHI4_AUDIO = {"hidden_size": 20, "intermediate_size": 12, "num_blocks": 1,
              "num_attention_heads": 2, "input_size": 13, "nemo_conv_channels": 6,
              "time_reduction": 4, "ext_pw_out_channel": 20, "nemo_final_size": 4,
              "depthwise_separable_out_channel": 20, "bias_max_distance": 10,
              "audio_token_id": 98}
OPT = {"model_type": "opt", "hidden_size": 48, "ffn_dim": 64, "num_attention_heads": 4,
       "num_hidden_layers": 2, "vocab_size": 101, "max_position_embeddings": 160, "bos_token_id": 2,
       "eos_token_id": 2, "pad_token_id": 1, "word_embed_proj_dim": 48, "dropout": 0.0}
QFORMER = {"hidden_size": 36, "intermediate_size": 52, "num_attention_heads": 6,
           "num_hidden_layers": 3, "encoder_hidden_size": 40}
COMPASS_TEXT = {**{key: value for key, value in TEXT.items() if key != "rms_norm_eps"},
                "model_type": "cohere_compass_text", "sliding_window": 7, "logit_scale": 0.25,
                "num_hidden_layers": 3,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                "rope_parameters": {"sliding_attention": SECTIONS, "full_attention": None}}
GLM5_TEXT = {**{key: value for key, value in TEXT.items() if key != "model_type"},
             "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "v_head_dim": 10,
             "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
             "linear_num_heads": 3, "linear_head_dim": 8, "hc_mult": 3, "index_n_heads": 12,
             "index_head_dim": 8, "index_topk": 6, "index_kpool": 3, "num_key_value_heads": 4,
             "layer_types": ["linear_attention", "indexed_attention"] * 2, "num_hidden_layers": 4,
             "mlp_layer_types": ["dense", "sparse", "sparse", "dense"]}
MUSE_TEXT = {**{key: value for key, value in TEXT.items() if key != "model_type"},
             "head_dim": 12, "sliding_window": 7, "num_hidden_layers": 5}
ARIA_TEXT = {**TEXT, "model_type": "aria_text", "moe_num_experts": 4, "moe_topk": 2,
             "moe_num_shared_experts": 1, "head_dim": 12}
FIRST_PLACEHOLDER = 90  # no token from here on is generated
NEW_TOKENS = 8


def phi4_tiles(generator, sizes):
    """Whole images of 4 × 4 patches and two tiles each: 2·5 or 4·3 rows, 1, and 2·3 rows."""
    tokens = [height // 8 * (width // 8 + 1) + 7 for height, width in sizes]
    count = len(sizes)
    return {"input_ids": prompt(generator, *tokens),
            "image_pixel_values": pixels(generator, count, 3, 3, 16, 16),
            "image_sizes": torch.tensor(sizes),
            "image_attention_mask": torch.ones((count, 3, 4, 4), dtype=int)}


def merge_sizes(inputs):
    """The inputs with the side of the blocks of patches that VideoLLaMA 3 merges: 1 for images."""
    return {**inputs, "image_merge_sizes": torch.ones(len(inputs["image_grid_thw"]), dtype=int)}


# name: model class, config, inputs of a number of images
MODELS = {
    "vipllava_images": ("VipLlavaForConditionalGeneration", {
        "text_config": TEXT, "vision_config": CLIP, "image_token_index": IMAGE,
        "vision_feature_layer": [-2, 1, 3]},
        lambda g, n: {"input_ids": prompt(g, *[9] * n), "pixel_values": pixels(g, n, 3, 12, 12)}),
    "video_llama_3_images": ("VideoLlama3ForConditionalGeneration", {
        "text_config": TEXT_QWEN2, "vision_config": ENCODER, "image_token_id": IMAGE,
        "video_token_id": 96, "tie_word_embeddings": False},
        lambda g, n: merge_sizes({"input_ids": prompt(g, 6, 4) if n > 1 else prompt(g, 6),
                                  **patches(g, (48,), *[(2, 3), (4, 1)][:n])})),
    "paddleocr_vl_images": ("PaddleOCRVLForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "paddleocr_vl_text", "head_dim": 12,
                        "use_bias": True, "rope_parameters": SECTIONS},
        "vision_config": {**ENCODER, "image_size": 16}, "image_token_id": IMAGE,
        "video_token_id": 96},
        lambda g, n: typed(prompt(g, *[6, 4][:n]),
                           patches(g, (3, 4, 4), *[(4, 6), (4, 4)][:n]))),
    "minimax_m3_vl_images": ("MiniMaxM3SparseForConditionalGeneration", {
        "text_config": MINIMAX_M3, "vision_config": {**ENCODER, "num_attention_heads": 2,
                                                     "image_size": 16},
        "image_token_index": IMAGE, "video_token_index": 96, "projector_hidden_size": 36},
        lambda g, n: {"input_ids": prompt(g, *[6, 2][:n]),
                      **patches(g, (96,), *[(4, 6), (4, 2)][:n])}),
    "kimi_vl_images": ("Kimi_K25ForConditionalGeneration", {
        "text_config": {**KIMI_TEXT, "tie_word_embeddings": False},
        "vision_config": KIMI_VISION, "image_token_id": IMAGE, "projection_hidden_size": 40,
        "tie_word_embeddings": False},
        lambda g, n: {"input_ids": prompt(g, *[6, 2][:n]),
                      **patches(g, (3, 4, 4), *[(4, 6), (4, 2)][:n])}),
    "glm_ocr_images": ("GlmOcrForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "glm_ocr_text", "head_dim": 12,
                        "rope_parameters": SECTIONS},
        "vision_config": {"depth": 2, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
                          "image_size": 16, "patch_size": 4, "out_hidden_size": 48},
        "image_token_id": IMAGE, "video_token_id": 96, "image_start_token_id": 93,
        "image_end_token_id": 94},
        lambda g, n: typed(prompt(g, *[6, 4][:n]), patches(g, (96,), *[(4, 6), (4, 4)][:n]))),
    "video_llava_images": ("VideoLlavaForConditionalGeneration", {
        "text_config": TEXT, "vision_config": CLIP, "image_token_index": IMAGE,
        "video_token_index": 96},
        lambda g, n: {"input_ids": prompt(g, *[9] * n), "pixel_values": pixels(g, n, 3, 12, 12)}),
    "phi4_multimodal_images": ("Phi4MultimodalForCausalLM", {
        **PHI4_TEXT, "vision_config": {**ENCODER, "num_hidden_layers": 3, "image_size": 16,
                                       "crop_size": 16, "image_token_id": IMAGE},
        "audio_config": PHI4_AUDIO}, lambda g, n: phi4_tiles(g, [[16, 32], [32, 16]][:n])),
    "blip2_images": ("Blip2ForConditionalGeneration", {
        "text_config": OPT, "vision_config": {**ENCODER, "image_size": 16},
        "qformer_config": QFORMER, "num_query_tokens": 6, "image_token_index": IMAGE},
        lambda g, n: {"input_ids": prompt(g, *[6] * n), "pixel_values": pixels(g, n, 3, 16, 16)}),
    "cohere_compass_images": ("CohereCompassForConditionalGeneration", {
        "text_config": COMPASS_TEXT,
        "vision_config": {"depth": 3, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
                          "patch_size": 4, "out_hidden_size": 48, "num_position_embeddings": 16,
                          "deepstack_visual_indexes": [0, 1]},
        "image_token_id": IMAGE, "video_token_id": 96, "vision_start_token_id": 93,
        "vision_end_token_id": 94, "tie_word_embeddings": False},
        lambda g, n: typed(prompt(g, *[6, 4][:n]), patches(g, (96,), *[(4, 6), (4, 4)][:n]))),
    "glm5_next_images": ("Glm5NextForConditionalGeneration", {
        "text_config": GLM5_TEXT,
        "vision_config": {"depth": 2, "hidden_size": 40, "intermediate_size": 56, "num_heads": 5,
                          "image_size": 16, "patch_size": 4, "out_hidden_size": 48,
                          "projection_intermediate_size": 68},
        "image_token_id": IMAGE, "video_token_id": 96, "image_start_token_id": 93,
        "image_end_token_id": 94, "video_start_token_id": 91, "video_end_token_id": 92},
        lambda g, n: typed(prompt(g, *[6, 4][:n]), patches(g, (96,), *[(4, 6), (4, 4)][:n]))),
    "muse_glimmer_images": ("MuseGlimmerForConditionalGeneration", {
        "text_config": MUSE_TEXT, "projector_hidden_size": 44, "out_hidden_size": 160,
        "vision_config": {"hidden_size": 40, "intermediate_size": 56, "num_attention_heads": 5,
                          "num_hidden_layers": 5, "patch_size": 4, "pos_emb_height": 3,
                          "pos_emb_width": 3}, "image_token_id": IMAGE, "video_token_id": 96},
        lambda g, n: typed(prompt(g, *[6, 4][:n]), patches(g, (96,), *[(4, 6), (4, 4)][:n]))),
    "aria_images": ("AriaForConditionalGeneration", {
        "text_config": ARIA_TEXT, "vision_config": {**ENCODER, "image_size": 16},
        "projector_patch_to_query_dict": {16: 5, 64: 7}, "image_token_index": IMAGE},
        lambda g, n: {"input_ids": prompt(g, *[5] * n), "pixel_values": pixels(g, n, 3, 16, 16)}),
}

def listed(inputs):
    """The inputs as inputs.json has them, without masks that hide nothing."""
    inputs = {key.removeprefix("image_") if key == "image_pixel_values" else key: value
              for key, value in inputs.items() if key != "image_attention_mask"}
    return {key: "inputs.safetensors" if value.is_floating_point() else value.tolist()
            for key, value in inputs.items()}


def pixels_of(inputs, name):
    """The pixels by the name that they are stored under; none of a text."""
    found = [value for value in inputs.values() if value.is_floating_point()]
    return {name: found[0]} if found else {}


def forbid_placeholders(model):
    with torch.no_grad():
        model.get_output_embeddings().weight[FIRST_PLACEHOLDER:] = 0


def as_kimi_vl(weights, config):
    """The model with the names and keys of Kimi-VL's published code."""
    renamed = {published_name(name).replace("mm_projector.proj.0.", "mm_projector.linear_1.")
               .replace("mm_projector.proj.2.", "mm_projector.linear_2.")
               .replace("mm_projector.", "multi_modal_projector."): value
               for name, value in weights.items()}
    text, vision = config["text_config"], config["vision_config"]
    return renamed, {
        "architectures": ["KimiVLForConditionalGeneration"], "model_type": "kimi_vl",
        "ignore_index": -100, "media_placeholder_token_id": IMAGE, "pad_token_id": 0,
        "torch_dtype": "bfloat16", "text_config": text, "vision_config": {
            "model_type": "moonvit", "init_pos_emb_height": vision["pos_emb_height"],
            "init_pos_emb_width": vision["pos_emb_width"], "merge_kernel_size": [2, 2],
            **{key: vision[key] for key in ("hidden_size", "intermediate_size", "patch_size",
                                            "num_attention_heads", "num_hidden_layers")}}}


def round_weights(model):
    """Weights that bfloat16 stores exactly."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.bfloat16())


def options_of(class_name):
    """Experts in double precision need the eager implementation."""
    has_experts = any(word in class_name for word in ("Sparse", "Aria", "Glm5"))
    return {"experts_implementation": "eager"} if has_experts else {}


def make(folder, name, class_name, config, draw_inputs):
    generator = torch.Generator().manual_seed(11)
    model_class = getattr(transformers, class_name)
    options = options_of(class_name)
    model = model_class._from_config(model_class.config_class(**config),
                                     attn_implementation="eager", **options).float().eval()
    draw_weights(model, generator)
    forbid_placeholders(model)
    round_weights(model)
    inputs, to_generate = draw_inputs(generator, 2), draw_inputs(generator, 1)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        weights = {key: value.bfloat16() if value.is_floating_point() else value
                   for key, value in load_file(Path(saved) / "model.safetensors").items()}
        saved_config = (Path(saved) / "config.json").read_text()
    written = saved_config.replace('"dtype": "float32"', '"dtype": "bfloat16"')
    if name.startswith("kimi_vl"):
        weights, published = as_kimi_vl(weights, json.loads(written))
        written = json.dumps(published, indent=2) + "\n"
    (target / "config.json").write_text(written)
    outputs = {**record(model, dict(inputs)), **generate(model, to_generate, NEW_TOKENS)}
    expected = {key: value.float() if value.is_floating_point() else value
                for key, value in outputs.items()}
    tensors = {**pixels_of(inputs, "pixel_values"),
               **pixels_of(to_generate, "generate.pixel_values")}
    of_prompt = listed(to_generate)
    document = {**listed(inputs), "generate": {"prompt_ids": of_prompt.pop("input_ids"),
                                               **of_prompt, "max_new_tokens": NEW_TOKENS}}
    for file, values in (("model", weights), ("expected", expected), ("inputs", tensors)):
        if not values:
            continue
        save_file({key: value.clone().contiguous() for key, value in values.items()},
                  target / f"{file}.safetensors")
    (target / "inputs.json").write_text(json.dumps(document) + "\n")
    print(name, sum(parameter.numel() for parameter in model.parameters()))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name in sys.argv[2:] or MODELS:
        make(folder, name, *MODELS[name])
