#!/usr/bin/env python3
"""Prints the rows of tests/data/towers/flops.csv of models with audio towers.

usage: make_audio_flops.py [NAME …]   (default: all models)

A prefill of 2 sequences with one clip each, as torch's FlopCounterMode counts it.
Needs torch and transformers.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

MODELS = {  # class, config, placeholder, audio tokens, spectrogram of each clip, tokens in all
    "voxtral": ("VoxtralForConditionalGeneration", "towers/tiny/voxtral.config.json", 24, 10,
                (16, 80), 27),
    "qwen2_5_omni_thinker": ("Qwen2_5OmniThinkerForConditionalGeneration",
                             "towers/tiny/qwen2_5_omni_thinker.config.json", 64, 10, (20, 40), 27),
    "qwen3_omni_moe_thinker": ("Qwen3OmniMoeThinkerForConditionalGeneration",
                               "golden/models/qwen3_omni_moe_thinker/config.json", 98, 13,
                               (20, 100), 27),
    "qwen2_5_omni_thinker_shorter": ("Qwen2_5OmniThinkerForConditionalGeneration",
                                     "towers/tiny/qwen2_5_omni_thinker.config.json", 64, 12,
                                     (20, 50), 27),
    "qwen3_omni_moe_thinker_shorter": ("Qwen3OmniMoeThinkerForConditionalGeneration",
                                       "golden/models/qwen3_omni_moe_thinker/config.json", 98, 46,
                                       (20, 350), 52),
    "qwen2_audio_shorter": ("Qwen2AudioForConditionalGeneration",
                            "golden/models/qwen2_audio_clips/config.json", 98, 3, (16, 20, 14),
                            27),
    "qwen3_asr": ("Qwen3ASRForConditionalGeneration", "golden/models/qwen3_asr_clips/config.json",
                  98, 26, (20, 200), 40),
    "audioflamingo3": ("AudioFlamingo3ForConditionalGeneration",
                       "golden/models/audioflamingo3_clips/config.json", 98, 5, (16, 20), 27),
    "glmasr": ("GlmAsrForConditionalGeneration", "golden/models/glmasr_clips/config.json", 98, 5,
               (16, 40), 27),
}
ROOT = Path(__file__).resolve().parent.parent / "data"


MASKS = {"omni": "feature_attention_mask", "qwen2_audio": "feature_attention_mask",
         "qwen3_asr": "input_features_mask",
         "audioflamingo3": "input_features_mask",
         "glmasr": "input_features_mask"}  # of sound, by a part of the model's name


def run(name, class_name, file, placeholder, tokens, spectrogram, length):
    """Row of a model. A third number of `spectrogram` is the frames before the silence."""
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**json.loads((ROOT / file).read_text()))
    options = {"experts_implementation": "eager"} if "Moe" in class_name else {}
    model = model_class._from_config(config, attn_implementation="eager", **options)
    model = model.float().eval()
    ids = torch.ones((2, length), dtype=torch.long)
    ids[:, 3:3 + tokens] = placeholder
    bins, frames, *sound = spectrogram
    inputs = {"input_ids": ids, "input_features": torch.randn((2, bins, frames))}
    for mask in (mask for part, mask in MASKS.items() if part in name):
        inputs[mask] = torch.ones((2, frames), dtype=torch.long)
        if sound:
            inputs[mask][:, sound[0]:] = 0
            inputs["attention_mask"] = torch.ones_like(ids)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs)
    counts = {str(operation).split(".")[-1]: flops
              for operation, flops in counter.get_flop_counts()["Global"].items()}
    linear = counts["mm"] + counts["addmm"]
    row = [name, "tiny", "forward_full", 2, length, 0, "", counts["mm"], counts["addmm"],
           counts["bmm"], 0, counts["convolution"], sum(counts.values()), 0, linear,
           counts["bmm"], "", f"torch.utils.flop_counter, eager attention, transformers "
           f"{transformers.__version__} torch {torch.__version__}", f"clips of {tokens} tokens"]
    return ",".join(f'"{value}"' if "," in str(value) else str(value) for value in row)


for name in sys.argv[1:] or MODELS:
    print(run(name, *MODELS[name]))
