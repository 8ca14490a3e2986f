#!/usr/bin/env python3
"""Makes tiny multimodal models and encoders, with inputs and the reference's outputs.

usage: make_towers.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all models)

Needs torch, transformers and safetensors. Configs and weights are as save_pretrained writes them.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

from tower_configs import (CLIP, COHERE2_TEXT, DINO, GEMMA4_TEXT, GEMMA4_VISION, GLM4V_MOE_TEXT,
                           GLM4V_VISION, IMAGE_ALONE, INTERNVL, KIMI_TEXT, KIMI_VISION, LFM2_TEXT,
                           LLAMA4_TEXT, LLAMA4_VISION, OMNI3_AUDIO, OMNI3_TEXT, OMNI3_VISION,
                           OMNI_AUDIO, OMNI_TEXT, OMNI_VISION, PIXTRAL, QWEN2_AUDIO, SIGLIP,
                           SIGLIP16, SIGLIP2, SOUND, TEXT, TEXT_ALONE, VOXTRAL)

IMAGE = 97
AUDIO = 98
SOUND_BEGINS, SOUND_ENDS, IMAGE_BEGINS, IMAGE_ENDS = 91, 92, 93, 94
GRID_POINTS = [[12, 24], [24, 12], [24, 24], [36, 12]]


def pixels(generator, *shape):
    return torch.randn(shape, generator=generator)


def prompt(generator, *images):
    """Text, then each image's placeholders and text."""
    ids = torch.randint(3, 90, (1, 3), generator=generator)
    parts = [ids]
    for tokens in images:
        parts += [torch.full((1, tokens), IMAGE), torch.randint(3, 90, (1, 2), generator=generator)]
    return torch.cat(parts, dim=1)


def tiles(generator):
    # Images of 20 × 40 and 30 × 14 pixels fill 2 and 3 tiles of 12 × 12 pixels.
    return {"pixel_values": pixels(generator, 2, 4, 3, 12, 12),
            "image_sizes": torch.tensor([[20, 40], [30, 14]])}


def patches(generator, elements, *grids):
    rows = sum(rows * columns for rows, columns in grids)
    return {"pixel_values": pixels(generator, rows, *elements),
            "image_grid_thw": torch.tensor([[1, *grid] for grid in grids])}


def typed(ids, inputs):
    """The inputs with the ids and the kind of each: 1 for an image's."""
    return {"input_ids": ids, "mm_token_type_ids": (ids == IMAGE).long(), **inputs}


def shaped_patches(generator, *grids):
    """Patches of images side by side, each padded to the most that one has."""
    most = max(rows * columns for rows, columns in grids)
    mask = torch.tensor([[1] * (rows * columns) + [0] * (most - rows * columns)
                         for rows, columns in grids])
    values = pixels(generator, len(grids), most, 48) * mask[:, :, None]
    return {"pixel_values": values, "pixel_attention_mask": mask,
            "spatial_shapes": torch.tensor(grids)}


def gemma4_inputs(generator):
    places = [[column, row] for row in range(4) for column in range(6)]
    ids = prompt(generator, 6)
    return {"pixel_values": torch.rand((1, 24, 48), generator=generator),
            "image_position_ids": torch.tensor([places]), "input_ids": ids,
            "mm_token_type_ids": (ids == IMAGE).long()}


def clips(generator, frames=40):
    """Two sequences of 17 tokens with three clips, each of which becomes 5 tokens."""
    first = prompt(generator, 5, 5)
    second = prompt(generator, 5)
    more = torch.randint(3, 90, (1, first.shape[1] - second.shape[1]), generator=generator)
    ids = torch.cat([first, torch.cat([more, second], dim=1)])
    prompt_ids = prompt(generator, 5)
    return {"input_ids": ids.where(ids != IMAGE, AUDIO),
            "input_features": pixels(generator, 3, 16, frames),
            "generate": {"input_ids": prompt_ids.where(prompt_ids != IMAGE, AUDIO),
                         "input_features": pixels(generator, 1, 16, frames)}}


def masked_clips(generator, frames):
    """The inputs with masks that hide nothing."""
    inputs = clips(generator, frames)
    for part in (inputs, inputs["generate"]):
        sound = part["input_features"]
        part["attention_mask"] = torch.ones_like(part["input_ids"])
        part["feature_attention_mask"] = torch.ones(
            (sound.shape[0], frames), dtype=torch.long)
    return inputs


def sound_and_image(generator, frames, tokens):
    """A clip of some segments, an image of 4 × 6 patches, and a clip more."""
    def text(count):
        return torch.randint(3, 90, (1, count), generator=generator)

    def between(begin, placeholder, count, end):
        return torch.tensor([[begin] + [placeholder] * count + [end]])

    def inputs(*parts):
        ids = torch.cat(parts, dim=1)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def sound(clips):
        return {"input_features": pixels(generator, clips, 20, frames),
                "feature_attention_mask": torch.ones((clips, frames), dtype=torch.long)}

    clip = between(SOUND_BEGINS, AUDIO, tokens, SOUND_ENDS)
    image = between(IMAGE_BEGINS, IMAGE, 6, IMAGE_ENDS)
    return {**inputs(text(3), clip, text(2), image, text(1), clip, text(2)),
            **patches(generator, (96,), (4, 6)), **sound(2),
            "generate": {**inputs(text(3), clip, text(2)), **sound(1)}}


def tokens(generator):
    return {"input_ids": torch.randint(3, 50, (2, 9), generator=generator)}


# name: model class, config, inputs
MODELS = {
    "internvl_second_last_layer": ("InternVLForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"},
        "vision_config": {**INTERNVL, "use_qk_norm": True, "norm_type": "rms_norm"},
        "image_token_id": IMAGE, "vision_feature_layer": -2, "image_seq_length": 4},
        lambda g: {"input_ids": prompt(g, 4), "pixel_values": pixels(g, 1, 3, 16, 16)}),
    "internvl_chat_images": ("InternVLForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2", "tie_word_embeddings": False},
        "vision_config": {**INTERNVL, "attention_bias": True}, "image_token_id": IMAGE,
        "tie_word_embeddings": False, "image_seq_length": 4},
        lambda g: {"input_ids": prompt(g, 4, 4), "pixel_values": pixels(g, 2, 3, 16, 16)}),
    "llama4_images": ("Llama4ForConditionalGeneration", {
        "text_config": LLAMA4_TEXT, "vision_config": LLAMA4_VISION, "image_token_index": IMAGE},
        lambda g: {"input_ids": prompt(g, 8), "pixel_values": pixels(g, 2, 3, 16, 16)}),
    "kimi_k25_images": ("Kimi_K25ForConditionalGeneration", {
        "text_config": KIMI_TEXT, "vision_config": KIMI_VISION, "image_token_id": IMAGE,
        "projection_hidden_size": 40, "tie_word_embeddings": False},
        lambda g: {"input_ids": prompt(g, 6, 2), **patches(g, (3, 4, 4), (4, 6), (4, 2))}),
    "llava_next_tiles": ("LlavaNextForConditionalGeneration", {
        "text_config": TEXT, "vision_config": CLIP, "image_token_index": IMAGE,
        "image_grid_pinpoints": GRID_POINTS},
        lambda g: {"input_ids": prompt(g, 9 + 3 * 7, 9 + 7 * 4), **tiles(g)}),
    "llava_onevision_tiles": ("LlavaOnevisionForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"}, "vision_config": SIGLIP,
        "image_token_index": IMAGE, "image_grid_pinpoints": GRID_POINTS,
        "vision_aspect_ratio": "anyres_max_1", "tie_word_embeddings": False},
        lambda g: {"input_ids": prompt(g, 9 + 2 * 5, 9 + 4 * 2), **tiles(g)}),
    "lfm2_vl_images": ("Lfm2VlForConditionalGeneration", {
        "text_config": LFM2_TEXT, "vision_config": SIGLIP2, "image_token_id": IMAGE,
        "projector_hidden_size": 52},
        lambda g: {"input_ids": prompt(g, 6, 6), **shaped_patches(g, (4, 6), (6, 4))}),
    "cohere2_vision_images": ("Cohere2VisionForConditionalGeneration", {
        "text_config": COHERE2_TEXT, "vision_config": SIGLIP16, "image_token_id": IMAGE,
        "alignment_intermediate_size": 64},
        lambda g: {"input_ids": prompt(g, 4, 4), "pixel_values": pixels(g, 2, 3, 16, 16)}),
    "aya_vision_images": ("AyaVisionForConditionalGeneration", {
        "text_config": COHERE2_TEXT, "vision_config": SIGLIP16, "image_token_index": IMAGE,
        "vision_feature_layer": -2},
        lambda g: {"input_ids": prompt(g, 4, 4), "pixel_values": pixels(g, 2, 3, 16, 16)}),
    "glm4v_moe_images": ("Glm4vMoeForConditionalGeneration", {
        "text_config": GLM4V_MOE_TEXT, "vision_config": GLM4V_VISION, "image_token_id": IMAGE,
        "video_token_id": 96, "image_start_token_id": IMAGE_BEGINS,
        "image_end_token_id": IMAGE_ENDS},
        lambda g: typed(prompt(g, 6, 4), patches(g, (96,), (4, 6), (4, 4)))),
    "exaone4_5_images": ("Exaone4_5_ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "exaone4", "head_dim": 12, "sliding_window": 8,
                        "layer_types": ["sliding_attention", "full_attention"]},
        "vision_config": {**OMNI_VISION, "num_heads": 4, "hidden_size": 32,
                          "num_key_value_heads": 2},
        "image_token_id": IMAGE, "video_token_id": 96},
        lambda g: typed(prompt(g, 6, 4), patches(g, (96,), (4, 6), (4, 4)))),
    "hyperclovax_vision_v2_images": ("HyperCLOVAXVisionV2ForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "hyperclovax", "tie_word_embeddings": False},
        "vision_config": {**OMNI_VISION, "model_type": "qwen2_5_vl_vision",
                          "out_hidden_size": 36},
        "image_token_id": IMAGE, "video_token_id": 96, "tie_word_embeddings": False},
        lambda g: typed(prompt(g, 6, 4), patches(g, (96,), (4, 6), (4, 4)))),
    "voxtral_clips": ("VoxtralForConditionalGeneration", {
        "text_config": {**TEXT, "head_dim": 12}, "audio_config": VOXTRAL, "audio_token_id": AUDIO},
        clips),
    "qwen2_audio_clips": ("Qwen2AudioForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen2"}, "audio_config": QWEN2_AUDIO,
        "audio_token_index": AUDIO}, lambda g: masked_clips(g, 20)),
    "lighton_ocr_images": ("LightOnOcrForConditionalGeneration", {
        "text_config": {**TEXT, "model_type": "qwen3", "head_dim": 12},
        "vision_config": PIXTRAL, "image_token_id": IMAGE, "tie_word_embeddings": True},
        lambda g: {"input_ids": prompt(g, 2, 4), "pixel_values": pixels(g, 2, 3, 16, 16),
                   "image_sizes": torch.tensor([[8, 16], [16, 16]])}),
    "qwen2_5_omni_thinker": ("Qwen2_5OmniThinkerForConditionalGeneration", {
        "text_config": OMNI_TEXT, "audio_config": OMNI_AUDIO, "vision_config": OMNI_VISION,
        "audio_token_index": AUDIO, "image_token_index": IMAGE, "video_token_index": 96,
        "audio_start_token_id": SOUND_BEGINS, "audio_end_token_id": SOUND_ENDS,
        "vision_start_token_id": IMAGE_BEGINS, "vision_end_token_id": IMAGE_ENDS},
        lambda g: sound_and_image(g, 49, 12)),  # segments of 20 frames, and one of 9
    "qwen3_omni_moe_thinker": ("Qwen3OmniMoeThinkerForConditionalGeneration", {
        "text_config": OMNI3_TEXT, "audio_config": OMNI3_AUDIO, "vision_config": OMNI3_VISION,
        "audio_token_id": AUDIO, "image_token_id": IMAGE, "video_token_id": 96,
        "audio_start_token_id": SOUND_BEGINS, "audio_end_token_id": SOUND_ENDS,
        "vision_start_token_id": IMAGE_BEGINS, "vision_end_token_id": IMAGE_ENDS},
        lambda g: sound_and_image(g, 330, 43)),  # segments of 100 frames, and one of 30
    "gemma4_standardised": ("Gemma4ForConditionalGeneration", {
        "text_config": GEMMA4_TEXT, "vision_config": GEMMA4_VISION, "audio_config": None,
        "image_token_id": IMAGE}, gemma4_inputs),
    "dinov3_registers": ("DINOv3ViTModel", {**DINO, "intermediate_size": 56},
                         lambda g: {"pixel_values": pixels(g, 2, 3, 18, 30)}),
    "dinov2_registers": ("Dinov2WithRegistersForImageClassification",
                         {**DINO, "mlp_ratio": 2, "num_labels": 5},
                         lambda g: {"pixel_values": pixels(g, 2, 3, 24, 24)}),
    "dinov2_registers_resized": ("Dinov2WithRegistersModel", {**DINO, "mlp_ratio": 2},
                                 lambda g: {"pixel_values": pixels(g, 2, 3, 18, 36)}),
    "vit_other_pooler": ("ViTModel", {
        "hidden_size": 40, "num_attention_heads": 5, "num_hidden_layers": 2, "image_size": 12,
        "patch_size": 4, "intermediate_size": 56, "pooler_act": "gelu", "pooler_output_size": 18},
        lambda g: {"pixel_values": pixels(g, 2, 3, 12, 12)}),
    "clip_text_alone": ("CLIPTextModel", {**TEXT_ALONE, "eos_token_id": 3}, tokens),
    "clip_vision_alone": ("CLIPVisionModel", IMAGE_ALONE,
                          lambda g: {"pixel_values": pixels(g, 2, 3, 12, 12)}),
    "siglip_text_alone": ("SiglipTextModel", {**TEXT_ALONE, "projection_size": 18}, tokens),
    "siglip_vision_alone": ("SiglipVisionModel", IMAGE_ALONE,
                            lambda g: {"pixel_values": pixels(g, 2, 3, 12, 12)}),
    "clip_image_classifier": ("CLIPForImageClassification", {
        "text_config": TEXT_ALONE, "vision_config": CLIP, "num_labels": 5},
        lambda g: {"pixel_values": pixels(g, 2, 3, 12, 12)}),
    "siglip_image_classifier": ("SiglipForImageClassification", {
        "text_config": TEXT_ALONE, "vision_config": SIGLIP, "num_labels": 5},
        lambda g: {"pixel_values": pixels(g, 2, 3, 12, 12)}),
    "qwen3_5_text_classifier": ("Qwen3_5ForSequenceClassification", {
        "text_config": {**TEXT, "model_type": "qwen3_5_text", "head_dim": 16,
                        "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                        "linear_key_head_dim": 8, "linear_value_head_dim": 10,
                        "layer_types": ["linear_attention", "full_attention"]},
        "vision_config": {**OMNI3_VISION, "deepstack_visual_indexes": []},
        "image_token_id": IMAGE, "num_labels": 5}, tokens),
    "gemma3_text_classifier": ("Gemma3ForSequenceClassification", {
        "text_config": {**TEXT, "model_type": "gemma3_text", "head_dim": 12, "sliding_window": 4,
                        "layer_types": ["sliding_attention", "full_attention"]},
        "vision_config": SIGLIP, "mm_tokens_per_image": 1, "num_labels": 5}, tokens),
    "hubert_batch_norm": ("HubertModel", {**SOUND, "conv_pos_batch_norm": True},
                          lambda g: {"input_values": pixels(g, 2, 200)}),
    "wav2vec2_sequences": ("Wav2Vec2ForSequenceClassification", SOUND,
                           lambda g: {"input_values": pixels(g, 2, 200)}),
    "wav2vec2_frames": ("Wav2Vec2ForAudioFrameClassification",
                        {**SOUND, "do_stable_layer_norm": True, "feat_extract_norm": "layer"},
                        lambda g: {"input_values": pixels(g, 2, 200)}),
}


def draw_weights(model, generator):
    with torch.no_grad():
        for name, weight in list(model.named_parameters()) + list(model.named_buffers()):
            noise = torch.randn(weight.shape, generator=generator)
            if any(end in name for end in ("freq", "position_ids", "embed_scale", "batches")):
                continue
            if "running_var" in name or "std_scale" in name:
                weight.copy_(1 + 0.3 * noise.abs())
            elif weight.dim() == 1 and name.endswith(("norm.weight", "norm1.weight",
                                                      "norm2.weight", "layer_scalar")):
                weight.copy_(1 + 0.1 * noise)
            elif not name.startswith(("rotary", "time")) and weight.is_floating_point():
                if name in dict(model.named_parameters()) or "std" in name or "running" in name:
                    weight.copy_(0.2 * noise)


def layers_of(model):
    """Lists of layers and the beginning of their outputs' names."""
    for path, module in model.named_modules():
        is_list = isinstance(module, torch.nn.ModuleList) and path.split(".")[-1] in (
            "layers", "layer", "blocks")
        if not is_list or path.startswith(("model.video_tower", "qformer")):
            continue
        tower = next((tower for tower, name in (("vision.", "vision"), ("vision.", "visual"),
                                                ("vision.", "image_embed"),
                                                ("vision.", "image_tower"),
                                                ("audio.", "audio")) if name in path), "")
        alone = "ForImageClassification" in type(model).__name__
        yield "" if alone else tower, module


def doubled(inputs):
    return {key: value.double() if value.is_floating_point() else value
            for key, value in inputs.items()}


def generate(model, inputs, count=16):
    """Greedy tokens behind a prompt, each from a pass over all tokens so far, and their logits."""
    inputs = doubled(inputs)
    logits = []
    for _ in range(count):
        with torch.no_grad():
            logits.append(model(**inputs, use_cache=False).logits[:, -1])
        inputs["input_ids"] = torch.cat([inputs["input_ids"], logits[-1].argmax(-1)[:, None]], 1)
        if "attention_mask" in inputs:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    return {"generate.ids": inputs["input_ids"][0], "generate.logits": torch.stack(logits, dim=1)}


def generate(model, inputs, count):
    """`count` greedy tokens behind a prompt, each from a pass over all tokens so far, and their logits."""
    inputs = doubled(inputs)
    logits = []
    for _ in range(count):
        with torch.no_grad():
            logits.append(model(**inputs, use_cache=False).logits[:, -1])
        ids = torch.cat([inputs["input_ids"], logits[-1].argmax(-1)[:, None]], 1)
        inputs["input_ids"] = ids
        if "attention_mask" in inputs:
            inputs["attention_mask"] = torch.ones_like(ids)
        if "mm_token_type_ids" in inputs:
            inputs["mm_token_type_ids"] = (ids == IMAGE).long()
        if "cross_attention_mask" in inputs:
            mask = inputs["cross_attention_mask"]
            inputs["cross_attention_mask"] = torch.cat([mask, mask[:, -1:]], dim=1)
    return {"generate.ids": ids[0], "generate.logits": torch.stack(logits, dim=1)}


def record(model, inputs):
    outputs = {}
    prompt = inputs.pop("generate", None)
    for prefix, layers in layers_of(model):
        if not prefix:
            def keep_input(_module, inputs, named):
                outputs["hidden_states.0"] = inputs[0] if inputs else named["hidden_states"]
            layers[0].register_forward_pre_hook(keep_input, with_kwargs=True)
        for i, layer in enumerate(layers):
            def keep(_module, _inputs, output, name=f"{prefix}layers.{i}.output"):
                outputs.setdefault(name, output[0] if isinstance(output, tuple) else output)
            layer.register_forward_hook(keep)
    model = model.double()  # rounding errors are then headroom's alone
    with torch.no_grad():
        result = model(**doubled(inputs))
    recorded = dict(outputs)  # hooks go on to fill the first one
    if isinstance(model, transformers.Llama4ForConditionalGeneration):
        # headroom's rows of an image begin with its class token.
        for name, output in outputs.items():
            if name.startswith("vision."):
                recorded[name] = output.roll(1, dims=1)
    for key in ("logits", "last_hidden_state", "pooler_output"):
        if result.get(key) is not None:
            recorded[key] = result[key]
    return {**recorded, **({} if prompt is None else generate(model, prompt))}


def published_name(name):
    """Kimi K2.5's names; transformers 5.16 renames more modules than it should."""
    for written, published in (("language_model.model.blocks.", "language_model.model.layers."),
                               ("vision_tower.encoder.patch_embed.", "vision_tower.patch_embed."),
                               ("patch_embed.pos_emb.position_embeddings",
                                "patch_embed.pos_emb.weight"),
                               ("model.mm_projector.", "mm_projector.")):
        name = name.replace(written, published)
    return name


INTERNVL_CHAT = {
    "vision_tower.embeddings.cls_token": "vision_model.embeddings.class_embedding",
    "vision_tower.embeddings.patch_embeddings.projection.": "vision_model.embeddings.patch_embedding.",
    "vision_tower.embeddings.position_embeddings": "vision_model.embeddings.position_embedding",
    "vision_tower.encoder.layer.": "vision_model.encoder.layers.", ".attention.projection_layer.":
    ".attn.proj.", ".layernorm_before.": ".norm1.", ".layernorm_after.": ".norm2.",
    ".lambda_1": ".ls1", ".lambda_2": ".ls2", "multi_modal_projector.layer_norm.": "mlp1.0.",
    "multi_modal_projector.linear_1.": "mlp1.1.", "multi_modal_projector.linear_2.": "mlp1.3."}


def as_internvl_chat(weights, config):
    """The model with the names and keys of OpenGVLab's code."""
    renamed = {}
    for name, value in weights.items():
        for written, published in INTERNVL_CHAT.items():
            name = name.replace(written, published)
        renamed[name] = value
    for name in [name for name in renamed if ".attention.q_proj." in name]:
        parts = [renamed.pop(name.replace("q_proj", f"{part}_proj")) for part in "qkv"]
        renamed[name.replace("attention.q_proj", "attn.qkv")] = torch.cat(parts)
    tower = config["vision_config"]
    vision = {key: tower[key] for key in (
        "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers",
        "hidden_act", "layer_norm_eps", "norm_type", "num_channels")}
    vision |= {"model_type": "intern_vit_6b", "architectures": ["InternVisionModel"],
               "image_size": tower["image_size"][0], "patch_size": tower["patch_size"][0],
               "qkv_bias": True, "qk_normalization": False, "drop_path_rate": 0.1,
               "use_flash_attn": True, "use_moe": False, "num_experts": 8}
    text = {**config["text_config"], "architectures": ["Qwen2ForCausalLM"]}
    return renamed, {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat",
                     "downsample_ratio": 0.5, "dynamic_image_size": True, "force_image_size": 16,
                     "img_context_token_id": IMAGE, "max_dynamic_patch": 12,
                     "min_dynamic_patch": 1, "pad2square": False, "ps_version": "v2",
                     "select_layer": -1, "template": "internvl2_5", "torch_dtype": "bfloat16",
                     "use_backbone_lora": 0, "use_llm_lora": 0, "use_thumbnail": True,
                     "llm_config": text, "vision_config": vision}


def drop_padding(inputs):
    """Removes frames of sound that the mask hides behind those of every clip."""
    mask = inputs.pop("input_features_mask", None)
    if mask is not None:
        inputs["input_features"] = inputs["input_features"][..., :int(mask.sum(1).max())]


def make(folder, name, class_name, config, draw_inputs):
    generator = torch.Generator().manual_seed(11)
    model_class = getattr(transformers, class_name)
    options = {"experts_implementation": "eager"} if "Moe" in class_name else {}
    model = model_class._from_config(model_class.config_class(**config),
                                     attn_implementation="eager", **options).float().eval()
    draw_weights(model, generator)
    inputs = draw_inputs(generator)
    if "generate" in inputs:  # no placeholder is generated
        with torch.no_grad():
            model.lm_head.weight[SOUND_BEGINS:] = 0
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        stored = load_file(Path(saved) / "model.safetensors")
        weights = {published_name(key): value for key, value in stored.items()}
        shutil.copy(Path(saved) / "config.json", target / "config.json")
    if name.startswith("internvl_chat"):
        weights, published = as_internvl_chat(weights, json.loads(
            (target / "config.json").read_text()))
        (target / "config.json").write_text(json.dumps(published, indent=2) + "\n")
    prompt = inputs.get("generate")
    outputs = {key: value.float() if value.is_floating_point() else value
               for key, value in record(model, inputs).items()}
    for part in (inputs, prompt or {}):
        drop_padding(part)
    tensors = {key: value for key, value in inputs.items() if value.is_floating_point()}
    listed = {key: "inputs.safetensors" if key in tensors else value.tolist()
              for key, value in inputs.items()}
    if prompt is not None:
        listed["generate"] = {
            "prompt_ids": prompt["input_ids"].tolist(), "input_features": "inputs.safetensors",
            "max_new_tokens": outputs["generate.logits"].shape[1]}
        tensors["generate.input_features"] = prompt["input_features"]
    for file, values in (("model", weights), ("expected", outputs), ("inputs", tensors)):
        save_file({key: value.clone().contiguous() for key, value in values.items()},
                  target / f"{file}.safetensors")
    (target / "inputs.json").write_text(json.dumps(listed) + "\n")
    print(name, sum(parameter.numel() for parameter in model.parameters()))


ROOT = Path(__file__).resolve().parent.parent / "data/golden/models"
if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name in sys.argv[2:] or MODELS:
        make(folder, name, *MODELS[name])
