"""Checks this reference against folders made by the published code: check_reference.py FOLDER...

A disagreement between headroom and this reference is meaningful only if this check passes.
"""
import sys

import torch
from families import FAMILIES
from folders import largest_excess, read_folder


def arguments(inputs):
    ids = torch.tensor(inputs["input_ids"])
    if "decoder_input_ids" in inputs:
        return (
            ids,
            torch.tensor(inputs["attention_mask"]),
            torch.tensor(inputs["decoder_input_ids"]),
        )
    if "attention_mask" in inputs:
        return (
            ids,
            torch.tensor(inputs["attention_mask"]),
            torch.tensor(inputs.get("token_type_ids", torch.zeros_like(ids).tolist())),
        )
    return (ids,)


def check(path):
    config, inputs, weights, expected = read_folder(path)
    outputs = FAMILIES[config["model_type"]](weights, config, *arguments(inputs))
    common = [name for name in outputs if name in expected]
    mask = torch.tensor(inputs["attention_mask"]).bool() if "attention_mask" in inputs else None
    worst = 0.0
    for name in common:
        padded = mask is not None and outputs[name].shape[:2] == mask.shape
        worst = max(worst, largest_excess(outputs[name], expected[name], mask if padded else None))
    unused = sorted(set(weights.tensors) - weights.used)
    right = worst <= 1 and common and not unused
    share = f"{worst:.3f} of the tolerance, {len(common)} outputs"
    print("ok  " if right else "FAIL", path, share, *unused[:3])


for folder in sys.argv[1:]:
    check(folder)
