#!/usr/bin/env python3
"""Changes each key of tiny models' configs, one at a time, and compares headroom's outputs with the
class's of transformers.

usage: flip_keys.py HEADROOM FOLDER...

A folder has config.json and inputs.json, as those of tests/data/families. Keys are those of the config
and those that its class fills in; each gets a few other values, and RoPE several kinds of scaling. Every
change is answered with equal outputs, a refusal or a note on what is not read; "WRONG" is none of these.
Needs torch and transformers. Not run by the tests: it takes seconds per key.
"""

import copy
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402
from weights import read_safetensors  # noqa: E402

EQUAL = 2e-3  # of the largest output
ACTIVATIONS = ("gelu", "silu", "relu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu2")
OUTPUTS = ("logits", "last_hidden_state", "logits_per_image", "text_embeds", "image_embeds")
# Names, token ids, and settings of the library that change no output.
UNREAD = {"model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "use_cache",
          "vocab_size", "tie_word_embeddings", "return_dict", "output_attentions", "auto_map",
          "output_hidden_states", "chunk_size_feed_forward", "is_encoder_decoder", "problem_type",
          "initializer_range", "_name_or_path"}
GROUPS = {"id2label", "label2id", "quantization_config"}
WITHOUT_VALUE = {"sliding_window": 4, "head_dim": 20, "final_logit_softcapping": 3.0,
                 "attn_logit_softcapping": 3.0, "n_shared_experts": 1, "q_lora_rank": 12,
                 "attention_chunk_size": 4, "clip_qkv": 0.5, "num_key_value_heads": 1}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
ROPES = ({"rope_type": "linear", "factor": 2.0},
         {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 16}, YARN,
         {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7, "truncate": False, "beta_fast": 16.0},
         {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16},
         {"rope_type": "proportional", "partial_rotary_factor": 0.5})


def other_values(key, value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return sorted({value + 1, value * 2, max(value // 2, 1)} - {value})
    if isinstance(value, float):
        return [value * 1.5 + 0.05]
    if isinstance(value, str):
        return [name for name in ACTIVATIONS if name != value] if "act" in key else []
    if isinstance(value, list) and len(value) > 1:
        return [value[::-1], value[1:] + value[:1]]
    return [WITHOUT_VALUE[key]] if value is None and key in WITHOUT_VALUE else []


def changes(config, path=()):
    """Places in the config, and the values to set there."""
    for key, value in config.items():
        if isinstance(value, dict) and key not in GROUPS:
            yield from changes(value, (*path, key))
        elif key not in UNREAD and not key.endswith("token_id"):
            yield from (((*path, key), other) for other in other_values(key, value))
    if "rope_theta" in config and "rope_type" not in config:
        yield from (((*path, "rope_scaling"), rope) for rope in ROPES)


def changed(config, path, value):
    config = copy.deepcopy(config)
    place = config
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return config


def draw(model):
    """Matrices that neither fade nor grow; vectors near their initial values; tables of sines as they
    are."""
    tables = [part.weight for part in model.modules() if hasattr(part, "create_weight")]
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if any(weight is table for table in tables):
                continue
            values = torch.randn(weight.shape, generator=noise)
            if weight.ndim < 2:
                weight.add_(0.1 * values)
            else:
                rows = 2 if "embed" in name else math.prod(weight.shape[2 if weight.ndim == 3 else 1:])
                weight.copy_(values / max(rows, 1) ** 0.5)


def inputs_of(folder):
    given = json.loads((folder / "inputs.json").read_text())
    stored = folder / "inputs.safetensors"
    tensors = read_safetensors(stored) if stored.exists() else {}
    names = [name for name in given if name not in ("generate", "decode", "prefill")]
    return {name: tensors[name] if isinstance(given[name], str) else torch.tensor(given[name])
            for name in names}


def run_class(config, inputs, folder):
    """Writes the model of the class to the folder, and returns its outputs."""
    (folder / "config.json").write_text(json.dumps(config))
    settings = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, (config.get("architectures") or settings.architectures)[0])
    model = kind._from_config(settings, attn_implementation="eager", dtype=torch.float32).eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    draw(model)
    with torch.no_grad():
        outputs = model(**inputs)
    model.save_pretrained(folder / "saved")
    shutil.move(folder / "saved/model.safetensors", folder / "model.safetensors")
    return outputs


def difference(outputs, mine, mask):
    """Of the largest output; padding says nothing."""
    worst = None
    for name in OUTPUTS:
        reference = getattr(outputs, name, None)
        if reference is None or name not in mine:
            continue
        other = mine[name].reshape(reference.shape)
        if mask is not None and mask.shape == reference.shape[:2]:
            reference, other = reference[mask.bool()], other[mask.bool()]
        error = ((reference - other).abs().max() / reference.abs().max()).item()
        worst = max(worst or 0.0, error)
    return worst


def answer(program, config, source):
    """One word on the config, and why."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs = inputs_of(source)
        try:
            outputs = run_class(config, inputs, folder)
        except Exception as error:  # the class refuses in many ways
            return "no class", f"{type(error).__name__}: {error}".splitlines()[0]
        for file in source.glob("inputs.*"):
            shutil.copy(file, folder)
        run = subprocess.run([program, "measure", ".", "--input", "inputs.json", "--runs", "1",
                              "--save-output", "outputs.safetensors"],
                             cwd=folder, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            kind = "refused" if run.returncode in (1, 2) else "WRONG"
            return kind, " ".join(run.stderr.split())
        error = difference(outputs, read_safetensors(folder / "outputs.safetensors"),
                           inputs.get("attention_mask"))
        if error is None:
            return "no output", ""
        return ("equal" if error < EQUAL else "WRONG"), f"{error:.1e}"


def main():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    program = Path(sys.argv[1]).resolve()
    counts = Counter()
    for source in map(Path, sys.argv[2:]):
        config = json.loads((source / "config.json").read_text())
        filled = transformers.AutoConfig.from_pretrained(source).to_dict()
        seen = []
        for path, value in [((), None), *changes(config), *changes(filled)]:
            if (path, value) in seen:
                continue
            seen.append((path, value))
            kind, why = answer(program, changed(config, path, value) if path else config, source)
            counts[kind] += 1
            print(source.name, ".".join(path), json.dumps(value), kind, why, sep="\t", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
