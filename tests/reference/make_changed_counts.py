#!/usr/bin/env python3
"""Writes the parameters of each class of transformers after each change of one key of its tiny config.

usage: make_changed_counts.py [FILE]   (default: tests/data/defaults/changed.jsonl)

Configs are those of tests/data that AutoConfig reads without code of its own; changes are those of
families/flip_keys.py. Models are on the meta device; tied weights count once. A change that the class
refuses has no entry, nor one that an earlier config of the class has. Needs torch and transformers.
"""

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "reference/families"))

import torch  # noqa: E402
import transformers  # noqa: E402
from flip_keys import changed, changes  # noqa: E402

FOLDERS = ("families/*/config.json", "golden/models/*/config.json", "towers/tiny/*.json",
           "encoders/tiny/*.json")
# Of classes that differ from their files: LongCat has weights of experts that compute nothing, and
# T5's tie their heads whatever the config says. The folders' configs are of their publishers' classes.
UNLIKE_FILES = {"longcat_flash", "longt5", "t5", "umt5", "jina_v3_published", "nomic_bert_moe"}
# Sizes with which the class can be built, and fails when it runs; a talker that the config lacks.
UNFIT = {"families/falcon_rw": ["/num_attention_heads"],
         "families/helium": ["/head_dim", "/hidden_size", "/num_attention_heads"],
         "golden/models/kimi_k25_images": ["/projection_hidden_size", "/vision_config/hidden_size"],
         "towers/tiny/qwen2_5_omni.config.json": ["/enable_audio_output"]}


def class_of(config):
    names = config.get("architectures") or [None]
    return getattr(transformers, names[0] or "", None)


def settings_of(config):
    return transformers.AutoConfig.for_model(**config)


def parameters(config):
    """None if the class refuses the config, which it does in many ways."""
    try:
        with torch.device("meta"):
            model = class_of(config)(settings_of(config))
        model.tie_weights()
    except Exception:  # noqa: BLE001
        return None
    return sum({id(weight): weight.numel() for weight in model.parameters()}.values())


def counted(source, config, seen):
    """The record of one config: its parameters, and those after each change; None if it has no model."""
    params = parameters(config)
    if params is None:
        return None
    counts = []
    name = source.relative_to(TESTS / "data").as_posix()
    unfit = UNFIT.get(name.removesuffix("/config.json"), [])
    filled = json.loads(settings_of(config).to_json_string(use_diff=False))
    for path, value in [*changes(config), *changes(filled)]:
        change = (config["architectures"][0], path, json.dumps(value))
        if change in seen or "Infinity" in change[2]:
            continue
        seen.add(change)
        place = "".join(f"/{key}" for key in path)
        count = None if place in unfit else parameters(changed(config, path, value))
        if count is not None:
            counts.append([place, value, count])
    return {"config": name, "params": params, "changes": counts}


def main():
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else TESTS / "data/defaults/changed.jsonl"
    seen = set()
    with open(file, "w") as out:
        for pattern in FOLDERS:
            for source in sorted((TESTS / "data").glob(pattern)):
                config = json.loads(source.read_text())
                known = config.get("model_type") in transformers.CONFIG_MAPPING
                unlike = {config.get("model_type"), source.parent.name} & UNLIKE_FILES
                if not known or class_of(config) is None or unlike:
                    continue
                record = counted(source, config, seen)
                if record:
                    out.write(json.dumps(record, separators=(",", ":")) + "\n")
                    print(record["config"], len(record["changes"]), flush=True)


if __name__ == "__main__":
    main()
