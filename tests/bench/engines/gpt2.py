"""GPT-2 (124M) in plain torch; the logits of all tokens."""

import torch
from torch import nn
from torch.nn import functional

from layers import Input, Linear, merge_heads, split_heads

LAYERS = 12
HIDDEN = 768
HEADS = 12
INNER = 3072
VOCAB = 50257
POSITIONS = 1024
EPSILON = 1e-5
INPUTS = (Input("ids", ("batch", "seq"), below=VOCAB),)
ONNX_INPUTS = INPUTS
ONNX_OPSET = 18


class Layer(nn.Module):
    """One pre-norm decoder layer, with the operators of GPT2Block in order."""

    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.qkv = Linear(HIDDEN, 3 * HIDDEN)
        self.out = Linear(HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up = Linear(HIDDEN, INNER)
        self.down = Linear(INNER, HIDDEN)

    def forward(self, x):
        qkv = self.qkv(self.attention_norm(x)).split(HIDDEN, dim=-1)
        query, key, value = (split_heads(part, HEADS) for part in qkv)
        context = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(merge_heads(context))
        return x + self.down(functional.gelu(self.up(self.norm(x)), approximate="tanh"))


class Model(nn.Module):
    """Maps token ids to logits."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, ids):
        x = self.words(ids) + self.positions(torch.arange(ids.size(1)).unsqueeze(0))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.words.weight)
