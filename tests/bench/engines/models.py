"""The models that all engines run, with random weights, by the names of headroom's presets."""

import torch

import bert
import gpt2
import llama
import vit
from layers import initialised

MODELS = {"bert-base": bert, "gpt2": gpt2, "vit-base": vit, "smollm2-135m": llama}


def build(name, seed=1):
    torch.manual_seed(seed)
    return initialised(MODELS[name].Model())


def inputs(name, batch, seq):
    return tuple(entry.tensor(batch, seq) for entry in MODELS[name].INPUTS)
