#!/usr/bin/env python3
"""Writes a tiny config of Step-3 with its parameters, and prints those of Step-3 itself and the
bytes that its attention saves for the backward pass.

usage: make_step3_counts.py [FOLDER]   (default: tests/data/towers)

Needs torch. Modules have the tensors of StepFun's published classes, which transformers lacks:
modeling_step3.py and vision_encoder.py. Models are on the meta device. Rows of other models in
tiny.csv stay as they are.
"""

import csv
import json
import sys
from pathlib import Path

import torch
from torch import nn

TEXT = {"model_type": "step3_text", "architectures": ["Step3TextForCausalLM"], "hidden_size": 48,
        "intermediate_size": 72, "num_attention_heads": 4, "num_attention_groups": 1,
        "num_hidden_layers": 4, "max_seq_len": 64, "vocab_size": 101, "rms_norm_eps": 1e-5,
        "moe_intermediate_size": 20, "moe_num_experts": 4, "moe_top_k": 2, "rope_theta": 500000,
        "rope_scaling": None, "max_position_embedding": 64, "share_expert_dim": 24,
        "share_q_dim": 28, "head_dim": 16, "norm_expert_weight": False, "moe_layers_enum": "1,2"}
VISION = {"model_type": "step3_vision_encoder", "hidden_size": 40, "intermediate_size": 56,
          "output_hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 5,
          "num_channels": 3, "image_size": 16, "patch_size": 4, "hidden_act": "quick_gelu",
          "layer_norm_eps": 1e-5}
TINY = {"model_type": "step3_vl", "architectures": ["Step3VLForConditionalGeneration"],
        "text_config": TEXT, "vision_config": VISION, "understand_projector_stride": 2,
        "projector_bias": True, "image_token_id": 100, "torch_dtype": "bfloat16"}
# Sizes of the classes (vLLM, configs/step3_vl.py); the network of the tower is that of
# EVA-02-CLIP-E (arXiv 2303.15389).
LARGE = {"text_config": {**TEXT, "hidden_size": 7168, "intermediate_size": 18432,
                         "num_attention_heads": 64, "num_hidden_layers": 61, "vocab_size": 128815,
                         "moe_intermediate_size": 5120, "moe_num_experts": 48,
                         "share_expert_dim": 5120, "share_q_dim": 2048, "head_dim": 256,
                         "moe_layers_enum": ",".join(map(str, range(4, 60)))},
         "vision_config": {**VISION, "hidden_size": 1792, "intermediate_size": 15360,
                           "output_hidden_size": 4096, "num_hidden_layers": 63, "image_size": 728,
                           "patch_size": 14},
         "understand_projector_stride": 2, "projector_bias": True}


class Norm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, True) + self.eps)).type_as(x) * self.weight


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, self.dim, rank = c["hidden_size"], c["head_dim"], c["share_q_dim"]
        heads = c["num_attention_heads"] * self.dim
        self.q_proj = nn.Linear(width, rank, bias=False)
        self.k_proj = nn.Linear(width, self.dim, bias=False)
        self.v_proj = nn.Linear(width, self.dim, bias=False)
        self.inter_norm = Norm(rank)
        self.wq = nn.Linear(rank, heads, bias=False)
        self.o_proj = nn.Linear(heads, width, bias=False)

    def forward(self, x):
        """Without rotary positions, which save no values."""
        q = self.wq(self.inter_norm(self.q_proj(x))).unflatten(-1, (-1, self.dim)).transpose(1, 2)
        k, v = (part(x)[:, None].expand(-1, q.shape[1], -1, -1).reshape(q.shape)
                for part in (self.k_proj, self.v_proj))
        weights = torch.softmax(q @ k.transpose(2, 3) * self.dim**-0.5, -1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, width, bias=False)


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        count, width, inner = (c[key] for key in ("moe_num_experts", "hidden_size",
                                                  "moe_intermediate_size"))
        self.gate = nn.Linear(width, count, bias=False)
        self.up_proj, self.gate_proj = (nn.Parameter(torch.empty(count, inner, width))
                                        for _ in range(2))
        self.down_proj = nn.Parameter(torch.empty(count, width, inner))


class Layer(nn.Module):
    def __init__(self, c, routed):
        super().__init__()
        width = c["hidden_size"]
        self.self_attn = Attention(c)
        if routed:
            self.moe, self.share_expert = Experts(c), Mlp(width, c["share_expert_dim"])
        else:
            self.mlp = Mlp(width, c["intermediate_size"])
        self.input_layernorm, self.post_attention_layernorm = Norm(width), Norm(width)


class Text(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, routed = c["hidden_size"], {int(i) for i in c["moe_layers_enum"].split(",")}
        self.embed_tokens = nn.Embedding(c["vocab_size"], width)
        self.layers = nn.ModuleList(Layer(c, i in routed) for i in range(c["num_hidden_layers"]))
        self.norm = Norm(width)
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=False)


class VisionLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)


class Tower(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, side = c["hidden_size"], c["patch_size"]
        self.class_embedding = nn.Parameter(torch.empty(1, width))
        self.patch_embedding = nn.Conv2d(c["num_channels"], width, side, side)
        self.position_embedding = nn.Embedding((c["image_size"] // side) ** 2 + 1, width)
        self.layers = nn.ModuleList(VisionLayer(c) for _ in range(c["num_hidden_layers"]))


class Whole(nn.Module):
    def __init__(self, c):
        super().__init__()
        vision, halved = c["vision_config"], c["vision_config"]["output_hidden_size"]
        self.language_model = Text(c["text_config"])
        self.vision_model = Tower(vision)
        self.vit_downsampler = nn.Conv2d(vision["hidden_size"], halved, 2,
                                         c["understand_projector_stride"])
        self.vit_downsampler2 = nn.Conv2d(halved, 2 * halved, 3, 2, 1)
        self.vit_large_projector = nn.Linear(2 * halved, c["text_config"]["hidden_size"],
                                             c["projector_bias"])


def parameters(model):
    return sum(weight.numel() for weight in model.parameters())


def saved_bytes(config):
    """Of one attention, a batch of 2 and 5 tokens, in float32; each storage once, no weights."""
    attention, storages = Attention(config), {}
    weights = {weight.untyped_storage().data_ptr() for weight in attention.parameters()}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    x = torch.randn(2, 5, config["hidden_size"], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        attention(x).sum()
    return sum(storages.values())


root = Path(__file__).resolve().parent.parent / "data/towers"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root
with torch.device("meta"):
    tiny, large = Whole(TINY), Whole(LARGE)
text = json.dumps(TINY, indent=2, sort_keys=True)
(folder / "tiny" / "step3_vl.config.json").write_text(text + "\n")
with open(folder / "tiny.csv", newline="") as file:
    rows = [row for row in csv.reader(file) if row[0] != "step3_vl"]
rows.append(["step3_vl", TINY["architectures"][0], parameters(tiny)])
with open(folder / "tiny.csv", "w", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows(rows)
print("Step-3:", parameters(large.language_model), "text,", parameters(large), "in all")
wider = {**TEXT, "share_q_dim": 32}
print("saved by ranks of 28 and 32:", saved_bytes(TEXT), saved_bytes(wider), "bytes")
