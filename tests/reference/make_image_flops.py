#!/usr/bin/env python3
"""Prints tests/data/towers/image_flops.csv: FLOPs that images add to a prefill.

usage: make_image_flops.py [NAME …]   (default: all models)

The models and inputs of make_wrapped_towers.py, counted by torch's FlopCounterMode with the images
and with as many tokens of text alone. Needs torch and transformers.
"""

import contextlib
import io
import sys

import torch
import transformers
from make_towers import IMAGE
from make_wrapped_towers import MODELS, options_of
from torch.utils.flop_counter import FlopCounterMode


def flops_of(model, inputs):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs, use_cache=False)
    return counter.get_total_flops()


def row(name, class_name, config, draw_inputs):
    model_class = getattr(transformers, class_name)
    options = options_of(class_name)
    model = model_class._from_config(model_class.config_class(**config),
                                     attn_implementation="eager", **options).float().eval()
    model.requires_grad_(False)
    # BLIP-2's class reads no text without images.
    text_model = model.language_model if name.startswith("blip2") else model
    inputs = draw_inputs(torch.Generator().manual_seed(11), 2)
    ids = inputs["input_ids"]
    text = {"input_ids": ids.where(ids != IMAGE, 1)}
    added = flops_of(model, inputs) - flops_of(text_model, text)
    return f"{name},{ids.shape[1]},{added}"


print("model,seq_len,image_flops")
for name in sys.argv[1:] or MODELS:
    with contextlib.redirect_stdout(io.StringIO()):
        line = row(name, *MODELS[name])
    print(line)
