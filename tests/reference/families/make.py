"""Completes model folders from their config.json: make.py FOLDER...

Draws weights and inputs, and computes the outputs with this reference.
"""

import json
import sys

from families import ENCODER_DECODERS, ENCODERS, FAMILIES
from folders import NEW, PROMPT, decoder, encoder, encoder_decoder, write_folder

SEEDS = range(100, 150)


def new_tokens(config):
    """A dynamic rotary embedding beyond the context changes with every token, so that a cache and a
    recomputation differ: such models generate within the context."""
    kind = (config.get("rope_scaling") or {}).get("rope_type")
    return min(NEW, config["max_position_embeddings"] - PROMPT) if kind == "dynamic" else NEW


def make(config):
    family = FAMILIES[config["model_type"]]
    for seed in SEEDS:
        if config["model_type"] in ENCODERS:
            made = encoder(family, config, seed)
        elif config["model_type"] in ENCODER_DECODERS:
            made = encoder_decoder(family, config, seed)
        else:
            made = decoder(family, config, seed, steps=new_tokens(config))
        if made:
            return made
    raise RuntimeError(f"no seed of {len(SEEDS)} gives clear greedy choices")


for folder in sys.argv[1:]:
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    weights, inputs, expected = make(config)
    write_folder(folder, weights, inputs, expected)
    print(folder, weights.parameters())
