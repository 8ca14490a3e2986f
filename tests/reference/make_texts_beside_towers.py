#!/usr/bin/env python3
"""Makes tiny models of Llama 3.2 Vision that read a text without images or with some, the
reference's outputs, and greedily generated tokens.

usage: make_texts_beside_towers.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all)

As make_wrapped_towers.py. reference.json of a model with images has its parameters, the FLOPs of a
prefill with and without them and of a decode step, as torch's FlopCounterMode counts them, and the
elements of keys and values that transformers' cache holds behind the prefill. Needs torch,
transformers and safetensors.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from make_towers import ROOT, pixels, prompt
from make_wrapped_towers import make
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.mllama.processing_mllama import (
    convert_sparse_cross_attention_mask_to_dense, get_cross_attention_token_mask)

TEXT = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 101, "max_position_embeddings": 128,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False}


def texts(generator, count):
    """Rows of 11 tokens."""
    return {"input_ids": torch.cat([prompt(generator, *[0] * 4) for _ in range(count)])}


VISION = {"hidden_size": 20, "intermediate_size": 24, "attention_heads": 5,
          "num_hidden_layers": 3, "num_global_layers": 2, "image_size": 12, "patch_size": 4,
          "vision_output_dim": 60, "intermediate_layers_indices": [0, 2]}
TILES = 4
PLACEHOLDER = TEXT["vocab_size"]  # the first row behind the vocabulary, as in the published models
PLACES = [[3, 6], [2, 3]]  # of the placeholders in a sequence; neighbours share the text behind
RATIOS = [[3, 6], [1, 5]]  # aspect_ratio_ids: 1 × 3, 2 × 2, 1 × 1 and 2 × 1 tiles
# Of 1 × 1, 1 × 2, 1 × 3, 1 × 4, 2 × 1, 2 × 2, 3 × 1 and 4 × 1, MllamaVisionConfig's ratios.
TILES_OF_RATIO = [1, 2, 3, 4, 2, 4, 3, 4]


def images(generator, count):
    """Two sequences of two images each; or a prompt of one image of 1 × 2 tiles."""
    places, ids = (PLACES, RATIOS) if count > 1 else ([[3]], [[2]])
    tokens = torch.randint(3, 90, (len(places), 11 if count > 1 else 8), generator=generator)
    for row, own in zip(tokens, places):
        row[own] = PLACEHOLDER
    filled = [[TILES_OF_RATIO[number - 1] for number in row] for row in ids]
    mask = torch.tensor([[[int(tile < tiles) for tile in range(TILES)] for tiles in row]
                         for row in filled])
    seen = [get_cross_attention_token_mask(row.tolist(), PLACEHOLDER) for row in tokens]
    of_text = convert_sparse_cross_attention_mask_to_dense(
        seen, filled, TILES, tokens.shape[1])
    # Tiles that only complete an image are zeros.
    values = pixels(generator, *mask.shape, 3, 12, 12) * mask[..., None, None, None]
    return {"input_ids": tokens, "pixel_values": values, "aspect_ratio_ids": torch.tensor(ids),
            "aspect_ratio_mask": mask, "cross_attention_mask": torch.tensor(of_text)}


# name: model class, config, inputs of a number of texts or images
MODELS = {
    "mllama_text": ("MllamaForConditionalGeneration", {
        "text_config": {**TEXT, "num_hidden_layers": 5, "cross_attention_layers": [1, 3]},
        "vision_config": {"hidden_size": 20, "intermediate_size": 24, "attention_heads": 5,
                          "num_hidden_layers": 2, "num_global_layers": 2, "max_num_tiles": 3,
                          "image_size": 8, "patch_size": 4, "vision_output_dim": 40,
                          "intermediate_layers_indices": [1],
                          "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1], [3, 1]]},
        "image_token_index": 100}, texts),
    "mllama_images": ("MllamaForConditionalGeneration", {
        "text_config": {**TEXT, "num_hidden_layers": 5, "cross_attention_layers": [1, 3]},
        "vision_config": VISION, "image_token_index": PLACEHOLDER}, images),
}

def counts(class_name, config, draw_inputs):
    generator = torch.Generator().manual_seed(11)
    model_class = getattr(transformers, class_name)
    model = model_class._from_config(model_class.config_class(**config),
                                     attn_implementation="eager").eval().requires_grad_(False)
    inputs = draw_inputs(generator, 2)

    def run(**arguments):
        with FlopCounterMode(display=False) as counter:
            cache = model(**arguments, use_cache=True).cache
        return counter.get_total_flops(), cache

    flops, cache = run(**inputs)
    held = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    step = {"input_ids": inputs["input_ids"][:, -1:],
            "cross_attention_mask": inputs["cross_attention_mask"][:, -1:]}
    return {"torch": torch.__version__, "transformers": transformers.__version__,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "sequences": len(inputs["input_ids"]), "tokens": inputs["input_ids"].shape[1],
            "images": inputs["aspect_ratio_ids"].shape[1], "flops": flops,
            "flops_of_text": run(input_ids=inputs["input_ids"])[0],
            "flops_of_step": run(**step, cache=cache)[0], "cache_elements": held}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name in sys.argv[2:] or MODELS:
        make(folder, name, *MODELS[name])
        if name.endswith("images"):
            (folder / name / "reference.json").write_text(json.dumps(counts(*MODELS[name])) + "\n")
