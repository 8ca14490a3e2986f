#!/usr/bin/env python3
"""Makes tiny multimodal models that read a text without images, the reference's outputs, and
greedily generated tokens: of classes whose towers are counted.

usage: make_texts_beside_towers.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all)

As make_wrapped_towers.py. Needs torch, transformers and safetensors.
"""

import sys
from pathlib import Path

import torch
from make_towers import ROOT, prompt
from make_wrapped_towers import make

TEXT = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 101, "max_position_embeddings": 128,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False}


def texts(generator, count):
    """Rows of 11 tokens."""
    return {"input_ids": torch.cat([prompt(generator, *[0] * 4) for _ in range(count)])}


# name: model class, config, inputs of a number of texts
MODELS = {
    "mllama_text": ("MllamaForConditionalGeneration", {
        "text_config": {**TEXT, "num_hidden_layers": 5, "cross_attention_layers": [1, 3]},
        "vision_config": {"hidden_size": 20, "intermediate_size": 24, "attention_heads": 5,
                          "num_hidden_layers": 2, "num_global_layers": 2, "max_num_tiles": 3,
                          "image_size": 8, "patch_size": 4, "vision_output_dim": 40,
                          "intermediate_layers_indices": [1],
                          "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1], [3, 1]]},
        "image_token_index": 100}, texts),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name in sys.argv[2:] or MODELS:
        make(folder, name, *MODELS[name])
