#!/usr/bin/env python3
"""Makes tests/data/towers/tied_heads.csv: which classes of transformers tie the head of the text
model, by tie_word_embeddings of the whole config and of its text_config.

usage: make_tied_heads.py [FILE]

Needs torch, transformers and timm (Gemma 3n), and reads the configs of tests/data/towers/tiny.
"""

import csv
import itertools
import json
import sys
from pathlib import Path

import torch
import transformers

DATA = Path(__file__).parent.parent / "data/towers"
# All tiny wrappers with a text_config, apart from those of publishers' own code (internvl_chat,
# kimi_vl, minicpmv, phi3_v, step3_vl).
MODELS = ["aria", "audioflamingo3", "aya_vision", "blip_2", "cohere2_vision", "cohere_compass",
          "ernie4_5_vl_moe", "exaone4_5", "florence2", "gemma3", "gemma4", "gemma4_unified",
          "glm46v", "glm4v", "glm4v_moe", "glm5_next", "glm_ocr", "glmasr", "got_ocr2",
          "granite_speech", "hyperclovax_vision_v2", "idefics2", "idefics3", "internvl", "lfm2_vl",
          "llava", "llava_next", "llava_next_video", "llava_onevision", "mistral3", "mllama",
          "molmo2", "muse_glimmer", "musicflamingo", "ovis2", "paddleocr_vl", "paligemma",
          "qwen2_5_omni_thinker", "qwen3_5_vl", "qwen3_asr", "qwen3_omni_moe_thinker", "qwen3_vl",
          "qwen3_vl_moe", "step3p7", "video_llama_3", "video_llava", "vipllava", "voxtral"]
# Those with a tiny model among the golden ones, by its folder.
GOLDEN = {"gemma3n": "gemma3n_whole", "kimi_k25": "kimi_k25_images",
          "llama4": "llama4_images", "lighton_ocr": "lighton_ocr_images",
          "minimax_m3_vl": "minimax_m3_vl_images",
          "qwen2_audio": "qwen2_audio_clips"}
WORDS = {None: "absent", True: "true", False: "false"}


def is_tied(config, whole, text):
    for place, value in ((config, whole), (config["text_config"], text)):
        place.pop("tie_word_embeddings", None)
        if value is not None:
            place["tie_word_embeddings"] = value
    model_class = getattr(transformers, config["architectures"][0])
    with torch.device("meta"):
        model = model_class(model_class.config_class(**config))
    model.tie_weights()
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


with open(sys.argv[1] if len(sys.argv) > 1 else DATA / "tied_heads.csv", "w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["model", "whole", "text", "tied"])
    files = {name: DATA / f"tiny/{name}.config.json" for name in MODELS}
    golden = DATA.parent / "golden/models"
    files |= {name: golden / folder / "config.json" for name, folder in GOLDEN.items()}
    for name, path in sorted(files.items()):
        config = path.read_text()
        for whole, text in itertools.product(WORDS, WORDS):
            tied = is_tied(json.loads(config), whole, text)
            rows.writerow([name, WORDS[whole], WORDS[text], WORDS[tied]])
