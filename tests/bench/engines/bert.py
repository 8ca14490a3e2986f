"""BERT-base encoder in plain torch."""

import math

import torch
from torch import nn
from torch.nn import functional

from layers import Input, Linear, merge_heads, split_heads

LAYERS = 12
HIDDEN = 768
HEADS = 12
HEAD_SIZE = HIDDEN // HEADS
INNER = 3072
VOCAB = 30522
POSITIONS = 512
EPSILON = 1e-12
INPUTS = (Input("ids", ("batch", "seq"), below=VOCAB), Input("types", ("batch", "seq"), constant=0))
# ONNX Runtime fuses attention only with a mask.
ONNX_INPUTS = (*INPUTS, Input("mask", ("batch", "seq"), constant=1))
# With later operator sets it does not detect the attention.
ONNX_OPSET = 12


class Layer(nn.Module):
    """One post-norm encoder layer, with the operators of BertLayer in order."""

    def __init__(self):
        super().__init__()
        self.query = Linear(HIDDEN, HIDDEN)
        self.key = Linear(HIDDEN, HIDDEN)
        self.value = Linear(HIDDEN, HIDDEN)
        self.out = Linear(HIDDEN, HIDDEN)
        self.attention_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up = Linear(HIDDEN, INNER)
        self.down = Linear(INNER, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, x, mask):
        query, key, value = (split_heads(linear(x), HEADS) for linear in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(HEAD_SIZE)
        if mask is not None:
            scores = scores + mask
        context = merge_heads(torch.matmul(functional.softmax(scores, dim=-1), value))
        x = self.attention_norm(self.out(context) + x)
        return self.norm(self.down(functional.gelu(self.up(x))) + x)


class Model(nn.Module):
    """Maps token ids to the last hidden states and the pooled output."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.types = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = Linear(HIDDEN, HIDDEN)

    def forward(self, ids, types, attention_mask=None):
        mask = None
        if attention_mask is not None:
            mask = attention_mask.unsqueeze(1).unsqueeze(2).to(torch.float32)
            mask = (1.0 - mask) * -10000.0
        positions = torch.arange(ids.size(1)).unsqueeze(0)
        x = self.norm(self.words(ids) + self.types(types) + self.positions(positions))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))
