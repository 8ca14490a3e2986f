"""Makes the rest of model folders from their config.json: make.py FOLDER...

Weights are drawn, inputs too, and outputs computed by this reference.
"""

import json
import sys

from families import ENCODER_DECODERS, ENCODERS, FAMILIES
from folders import NEW, PROMPT, decoder, encoder, encoder_decoder, write_folder

SEEDS = range(100, 150)


def new_tokens(config):
    """Beyond its context a dynamic rotary embedding changes with each token, so that a cache and a
    recomputation differ: such a model generates within it."""
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
