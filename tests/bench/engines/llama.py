"""SmolLM2 135M, a Llama, in plain torch; the logits of all tokens."""

import torch
from torch import nn
from torch.nn import functional

from layers import Input, Linear, merge_heads, split_heads

LAYERS = 30
HIDDEN = 576
HEADS = 9
KEY_VALUE_HEADS = 3
HEAD_SIZE = HIDDEN // HEADS
INNER = 1536
VOCAB = 49152
ROPE_THETA = 100000.0
EPSILON = 1e-5
INPUTS = (Input("ids", ("batch", "seq"), below=VOCAB),)
ONNX_INPUTS = INPUTS
ONNX_OPSET = 18


class RmsNorm(nn.Module):
    """LlamaRMSNorm."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON))


def rotated(x, cosine, sine):
    """RoPE of [batch, heads, seq, head_dim], halves rotated as in apply_rotary_pos_emb."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-second, first], dim=-1) * sine


class Layer(nn.Module):
    """One pre-norm decoder layer, with the operators of LlamaDecoderLayer in order."""

    def __init__(self):
        super().__init__()
        self.attention_norm = RmsNorm()
        self.query = Linear(HIDDEN, HEADS * HEAD_SIZE, bias=False)
        self.key = Linear(HIDDEN, KEY_VALUE_HEADS * HEAD_SIZE, bias=False)
        self.value = Linear(HIDDEN, KEY_VALUE_HEADS * HEAD_SIZE, bias=False)
        self.out = Linear(HEADS * HEAD_SIZE, HIDDEN, bias=False)
        self.norm = RmsNorm()
        self.gate = Linear(HIDDEN, INNER, bias=False)
        self.up = Linear(HIDDEN, INNER, bias=False)
        self.down = Linear(INNER, HIDDEN, bias=False)

    def forward(self, x, cosine, sine):
        normed = self.attention_norm(x)
        query = rotated(split_heads(self.query(normed), HEADS), cosine, sine)
        key = rotated(split_heads(self.key(normed), KEY_VALUE_HEADS), cosine, sine)
        value = split_heads(self.value(normed), KEY_VALUE_HEADS)
        key, value = (part.repeat_interleave(HEADS // KEY_VALUE_HEADS, dim=1) for part in (key, value))
        context = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(merge_heads(context))
        normed = self.norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Model(nn.Module):
    """Maps token ids to logits."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RmsNorm()
        exponents = torch.arange(0, HEAD_SIZE, 2, dtype=torch.float32) / HEAD_SIZE
        self.register_buffer("frequencies", ROPE_THETA**-exponents)

    def forward(self, ids):
        positions = torch.arange(ids.size(1), dtype=torch.float32)
        angles = (positions.unsqueeze(1) * self.frequencies).repeat(1, 2)
        cosine, sine = angles.cos(), angles.sin()
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return functional.linear(self.norm(x), self.words.weight)
