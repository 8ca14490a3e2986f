#!/usr/bin/env python3
"""Writes raw configs of drafts for speculative decoding, and the parameters of their classes.

usage: make_drafts.py SPECFORGE DFLASH   (checkouts of sgl-project/SpecForge at a6b6b02 and
z-lab/dflash at 1012959, with tests/fixtures of 0a7587c)

Needs torch and transformers 5. Copies the configs of both repositories to tests/data/drafts, and
writes params.csv there: the published class on the meta device, without its buffers; of DFlash 2,
the values in the header of its published file.
"""

import csv
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers

ROOT = Path(__file__).resolve().parents[1] / "data/drafts"
EAGLE_LIKE = ("LlamaForCausalLMEagle3", "PEagleDraftModel")
FIXTURES = "tests/fixtures"
BYTES = 2  # of a value in bfloat16

specforge, dflash = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(specforge))
from specforge.modeling import draft  # noqa: E402

sources = {file.stem.lower(): file for file in sorted((specforge / "configs").glob("*.json"))}
rows = []
for name, source in sources.items():
    keys = json.loads(source.read_text())
    class_name = keys.get("architectures", [None])[0]
    model_class = getattr(draft, class_name or "", None)
    if model_class is None:
        print(f"{name}: {class_name} is another class")
        continue
    config_class = transformers.LlamaConfig if class_name in EAGLE_LIKE else transformers.Qwen3Config
    try:
        with torch.device("meta"):
            model = model_class(config_class(**{k: v for k, v in keys.items() if k != "model_type"}))
    except Exception as error:  # of a config that its own class refuses
        print(f"{name}: {class_name}: {error}")
        continue
    shutil.copyfile(source, ROOT / f"{name}.config.json")
    rows.append((name, class_name, sum(weight.numel() for weight in model.parameters())))
shutil.copyfile(dflash / FIXTURES / "dflash2-config.json", ROOT / "dflash2-fixture.config.json")
header = json.loads((dflash / FIXTURES / "dflash2-safetensors-header.json").read_text())
stored = max(tensor["data_offsets"][1] for tensor in header.values()) // BYTES
rows.append(("dflash2-fixture", "DFlash2DraftModel", stored))
with open(ROOT / "params.csv", "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("name", "model_class", "params_total"))
    writer.writerows(sorted(rows))
