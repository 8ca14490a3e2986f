#!/usr/bin/env python3
"""Makes tiny models that compare texts with images, with inputs and the reference's outputs.

usage: make_similarity.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all models)

Needs torch, transformers and safetensors. The models have choices that the larger recordings lack:
an end of text found by its greatest id, images of another number than texts, other patches.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import (CLIPConfig, CLIPModel, Siglip2Config, Siglip2Model, SiglipConfig,
                          SiglipModel)

VOCAB, SEQ_LEN = 47, 9
PAD, END = 1, VOCAB - 1

TEXT = {"hidden_size": 24, "intermediate_size": 32, "num_attention_heads": 3,
        "num_hidden_layers": 2, "max_position_embeddings": 12, "vocab_size": VOCAB,
        "bos_token_id": 0, "pad_token_id": PAD}
VISION = {"hidden_size": 20, "intermediate_size": 28, "num_attention_heads": 2,
          "num_hidden_layers": 2, "image_size": 14, "patch_size": 4, "num_channels": 3}

NAFLEX = {key: value for key, value in VISION.items() if key != "image_size"} | {"num_patches": 25}
SHAPES = [[3, 7], [5, 5], [2, 9], [6, 4]]

# name: model class, config class, config, texts, images or their shapes in patches, and the token
# after the end of a text
MODELS = {
    # The end of a text is its greatest id, whatever eos_token_id says.
    "clip_greatest_id": (CLIPModel, CLIPConfig, {
        "projection_dim": 12,
        "text_config": {**TEXT, "eos_token_id": 2, "hidden_act": "gelu"},
        "vision_config": {**VISION, "hidden_act": "gelu"}}, 2, 3, PAD),
    # The end of a text is the first of several equal tokens.
    "clip_one_image": (CLIPModel, CLIPConfig, {
        "projection_dim": 8,
        "text_config": {**TEXT, "eos_token_id": END},
        "vision_config": VISION}, 4, 1, END),
    "siglip_more_texts": (SiglipModel, SiglipConfig, {
        "text_config": {**TEXT, "eos_token_id": END, "projection_size": 20},
        "vision_config": {**VISION, "num_attention_heads": 5}}, 3, 2, END),
    # Images of their own shapes, of less, as many and more patches than the table a side.
    "siglip2_shapes": (Siglip2Model, Siglip2Config, {
        "text_config": {**TEXT, "eos_token_id": END, "projection_size": 20},
        "vision_config": {**NAFLEX, "num_attention_heads": 5}}, 3, SHAPES, END),
}


def draw_weights(model, generator):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            norm = "norm" in name and name.endswith("weight")
            if name == "logit_scale":
                weight.fill_(1.3)
            elif name == "logit_bias":
                weight.fill_(-0.7)
            else:
                weight.copy_(1 + 0.1 * noise if norm else 0.2 * noise)


def draw_ids(texts, filler, generator):
    """Texts of different lengths, each ended by END and completed with `filler`."""
    ids = torch.randint(3, END, (texts, SEQ_LEN), generator=generator)
    for row in range(texts):
        ids[row, SEQ_LEN - 1 - row] = END
        ids[row, SEQ_LEN - row :] = filler
    return ids


def draw_images(images, generator):
    """Pixels; or patches, completed to those of the largest image."""
    side, channels, patch = VISION["image_size"], VISION["num_channels"], VISION["patch_size"]
    if isinstance(images, int):
        return {"pixel_values": torch.randn((images, channels, side, side), generator=generator)}
    counts = [rows * columns for rows, columns in images]
    patches = torch.randn((len(images), max(counts), channels * patch**2), generator=generator)
    mask = torch.arange(max(counts))[None, :] < torch.tensor(counts)[:, None]
    return {"pixel_values": patches, "pixel_attention_mask": mask.int(),
            "spatial_shapes": torch.tensor(images)}


def record_layers(model, outputs):
    for prefix, encoder in (("", model.text_model), ("vision.", model.vision_model)):
        for i, layer in enumerate(encoder.encoder.layers):
            def keep(_module, _inputs, output, name=f"{prefix}layers.{i}.output"):
                outputs[name] = output[0] if isinstance(output, tuple) else output
            layer.register_forward_hook(keep)


def make(folder, name, model_class, config_class, config, texts, images, filler):
    generator = torch.Generator().manual_seed(7)
    model = model_class(config_class(**config, attn_implementation="eager")).eval()
    draw_weights(model, generator)
    ids = draw_ids(texts, filler, generator)
    drawn = draw_images(images, generator)
    outputs = {}
    record_layers(model, outputs)
    with torch.no_grad():
        result = model(input_ids=ids, **drawn)
    real = drawn.get("pixel_attention_mask")
    for key in [key for key in outputs if key.startswith("vision.") and real is not None]:
        outputs[key] = outputs[key][real.bool()]  # without the rows that complete an image
    for key in ("text_embeds", "image_embeds", "logits_per_text", "logits_per_image"):
        outputs[key] = result[key]
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        weights = load_file(Path(saved) / "model.safetensors")
        shutil.copy(Path(saved) / "config.json", target / "config.json")
    for file, tensors in (("model", weights), ("expected", outputs),
                          ("inputs", {"pixel_values": drawn["pixel_values"]})):
        save_file({key: value.clone().contiguous() for key, value in tensors.items()},
                  target / f"{file}.safetensors")
    inputs = {"input_ids": ids.tolist()} | {
        key: "inputs.safetensors" if key == "pixel_values" else value.tolist()
        for key, value in drawn.items()}
    (target / "inputs.json").write_text(json.dumps(inputs) + "\n")
    print(name, sum(p.numel() for p in model.parameters()))


root = Path(__file__).resolve().parent.parent / "data/golden/models"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root
for name in sys.argv[2:] or MODELS:
    make(folder, name, *MODELS[name])
