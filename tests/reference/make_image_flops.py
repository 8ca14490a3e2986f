#!/usr/bin/env python3
"""Prints tests/data/towers/image_flops.csv: FLOPs that images add to a prefill.

usage: make_image_flops.py

The models and inputs of make_wrapped_towers.py, counted by torch's FlopCounterMode with the images
and with as many tokens of text alone. Needs torch and transformers.
"""

import contextlib
import io

import torch
import transformers
from make_towers import IMAGE
from make_wrapped_towers import COUNTED, MODELS
from torch.utils.flop_counter import FlopCounterMode


def flops_of(model, inputs):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs, use_cache=False)
    return counter.get_total_flops()


def row(name, class_name, config, draw_inputs):
    model_class = getattr(transformers, class_name)
    options = {"experts_implementation": "eager"} if "Sparse" in class_name else {}
    model = model_class._from_config(model_class.config_class(**config),
                                     attn_implementation="eager", **options).float().eval()
    inputs = draw_inputs(torch.Generator().manual_seed(11), 2)
    ids = inputs["input_ids"]
    text = {"input_ids": ids.where(ids != IMAGE, 1)}
    added = flops_of(model, inputs) - flops_of(model, text)
    return f"{name},{ids.shape[1]},{added}"


print("model,seq_len,image_flops")
for name, arguments in {**MODELS, **COUNTED}.items():
    with contextlib.redirect_stdout(io.StringIO()):
        line = row(name, *arguments)
    print(line)
