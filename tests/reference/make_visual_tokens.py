#!/usr/bin/env python3
"""Makes tests/data/towers/visual_tokens.csv: visual tokens of images by the reference's functions.

usage: make_visual_tokens.py [FILE]

Needs torch, torchvision and transformers. Sizes are those of published models.
"""

import csv
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from transformers.image_utils import SizeDict
from transformers.models.cohere2_vision.image_processing_cohere2_vision import (
    get_optimal_tiled_canvas)
from transformers.models.glm5_next.image_processing_glm5_next import (
    smart_resize as glm5_next_resize)
from transformers.models.muse_glimmer.image_processing_muse_glimmer import (
    smart_resize as muse_glimmer_resize)
from transformers.models.kimi_k25.image_processing_kimi_k25 import navit_resize
from transformers.models.lfm2_vl.image_processing_lfm2_vl import Lfm2VlImageProcessor
from transformers.models.llama4.image_processing_llama4 import (
    find_supported_resolutions, get_best_fit)
from transformers.models.llava_next.modeling_llava_next import (
    LlavaNextModel, image_size_to_num_patches)
from transformers.models.llava_onevision.modeling_llava_onevision import LlavaOnevisionModel
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

SIZES = [(336, 336), (480, 640), (1080, 1920), (1200, 400), (333, 1777), (2500, 2300), (40, 50),
         (3000, 200), (768, 768)]
# Squares whose sides are no whole blocks: several grids have their aspect ratio.
SQUARES = [(side, side) for side in (512, 1000, 1024, 1280, 2000, 4000)]
LLAVA = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
ONEVISION = [[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)]


def tiled(model_class, side, patch, points, size, **more):
    config = SimpleNamespace(vision_config=SimpleNamespace(image_size=side, patch_size=patch),
                             image_grid_pinpoints=points)
    tiles = image_size_to_num_patches(list(size), points, side)
    features = torch.zeros(tiles, (side // patch) ** 2, 1)
    model = SimpleNamespace(config=config)
    return model_class.pack_image_features(model, [features], torch.tensor([size]),
                                           image_newline=torch.zeros(1), **more)[1].item()


def llama4(size):
    square = SizeDict(height=336, width=336)
    resolutions = torch.tensor(find_supported_resolutions(16, square))
    height, width = get_best_fit(size, resolutions).tolist()
    tiles = height * width // 336 ** 2
    return 144 * (tiles if tiles == 1 else tiles + 1)


def kimi(size):
    height, width = navit_resize(*size, 14, 2, 16384, 512)[1]
    return height * width // 28 ** 2


def qwen(size, least, most):
    if max(size) / min(size) > 200:
        raise ValueError("the reference refuses this aspect ratio")
    height, width = smart_resize(*size, factor=28, min_pixels=least, max_pixels=most)
    return height * width // 28 ** 2


def lfm2_vl(size):
    """Visual tokens of the processor's images: 2 × 2 patches of 16 pixels each."""
    made = Lfm2VlImageProcessor()(torch.zeros(1, 3, *size), return_tensors="pt")
    return sum(rows * columns // 4 for rows, columns in made["spatial_shapes"].tolist())


def cohere2_vision(size):
    columns, rows = get_optimal_tiled_canvas(size, (512, 512), 1, 12)
    tiles = rows * columns
    return 256 * (tiles if tiles == 1 else tiles + 1)


def muse_glimmer(size):
    height, width = muse_glimmer_resize(*size, patch_size=28, max_tokens=4096)
    return height * width // 28 ** 2


def glm5_next(size):
    height, width = glm5_next_resize(2, *size)
    return height * width // 28 ** 2


RULES = {
    "muse_glimmer": muse_glimmer,
    "glm5_next": glm5_next,
    "lfm2_vl": lfm2_vl,
    "cohere2_vision": cohere2_vision,
    "llama4": llama4,
    "kimi_k25": kimi,
    "qwen2_vl": lambda size: qwen(size, 1, math.inf),
    "qwen2_vl_limits": lambda size: qwen(size, 256 * 28 ** 2, 1280 * 28 ** 2),
    "llava_next": lambda size: tiled(LlavaNextModel, 336, 14, LLAVA, size,
                                     vision_feature_select_strategy="default"),
    "llava_onevision": lambda size: tiled(LlavaOnevisionModel, 384, 14, ONEVISION, size,
                                          vision_aspect_ratio="anyres_max_9"),
}

default = Path(__file__).parent.parent / "data/towers/visual_tokens.csv"
with open(sys.argv[1] if len(sys.argv) > 1 else default, "w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["rule", "height", "width", "tokens"])
    for rule, tokens in RULES.items():
        for size in SIZES + (SQUARES if rule in ("muse_glimmer", "glm5_next") else []):
            rows.writerow([rule, *size, tokens(size)])
