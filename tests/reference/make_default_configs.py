#!/usr/bin/env python3
"""Writes default configs of classes as transformers 5 saves them, and the parameters of the models.

usage: make_default_configs.py [FOLDER]   (default: tests/data/defaults)

Needs torch and transformers, and timm for Gemma 3n. Models are instantiated on the meta device; tied weights count once.
"""

import csv
import sys
from pathlib import Path

import torch
import transformers

CLASSES = ("DeepseekV4ForCausalLM", "Gemma3nForConditionalGeneration",
           "Gemma4ForConditionalGeneration", "KimiLinearForCausalLM",
           "Kimi_K25ForConditionalGeneration", "LagunaForCausalLM",
           "LightOnOcrForConditionalGeneration", "MiMoV2FlashForCausalLM",
           "MiniMaxM3SparseForConditionalGeneration", "Qwen2AudioForConditionalGeneration",
           "Qwen3VLForConditionalGeneration",
           "Qwen3VLMoeForConditionalGeneration", "Siglip2Model")

# Types that run a class of another type.
SHARED = {"iquestcoder": "LlamaForCausalLM"}

root = Path(__file__).resolve().parent.parent / "data/defaults"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root
folder.mkdir(parents=True, exist_ok=True)
rows = []
configs = [(name, getattr(transformers, name).config_class) for name in CLASSES]
configs += [(name, transformers.CONFIG_MAPPING[type]) for type, name in SHARED.items()]
for name, config_class in configs:
    model_class = getattr(transformers, name)
    config = config_class(architectures=[name])
    config.to_json_file(folder / f"{config.model_type}.config.json")
    with torch.device("meta"):
        model = model_class(config)
    model.tie_weights()
    distinct = {id(weight): weight.numel() for weight in model.parameters()}
    rows.append((config.model_type, name, sum(distinct.values())))
with open(folder / "params.csv", "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("model_type", "model_class", "params_total"))
    writer.writerows(sorted(rows))
